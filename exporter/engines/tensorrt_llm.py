"""TensorRT-LLM (trtllm-serve), 1.1 to 1.3: its page is not at /metrics, where JSON is that every reader takes away.

Series appear with their first use. The first versions had five families, without any prefix.
"""

from datetime import timedelta
from typing import Any

from exporter import catalogue
from exporter.dialect import Answers, Engine, Extra, Facts, LabelMap, Merge, Reading, always

_ITERATION = "with enable_iter_perf_stats: true"


def _facts(answers: Answers) -> Facts:
    version = answers.get("/version")
    text = version.get("version") if isinstance(version, dict) else None
    return Facts(model=_model(answers.get("/v1/models")), version=text if isinstance(text, str) else None)


def _model(models: Any) -> str | None:  # noqa: ANN401 - JSON of a foreign server
    listed = models.get("data") if isinstance(models, dict) else None
    names = [entry.get("id") for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    return names[0] if len(names) == 1 and isinstance(names[0], str) and names[0] else None


ENGINE = Engine(
    name="tensorrt-llm",
    title="TensorRT-LLM",
    prefixes=("trtllm_", "trtllm:"),  # the second one is Dynamo's
    path="/prometheus/metrics",
    unprefixed=(
        "request_success_total",
        "e2e_request_latency_seconds_bucket",
        "time_to_first_token_seconds_bucket",
    ),
    readings=(
        Reading(metric=catalogue.REQUESTS_RUNNING, names=("num_requests_running",), note=_ITERATION),
        Reading(metric=catalogue.REQUESTS_WAITING, names=("num_requests_waiting",), note=_ITERATION),
        Reading(metric=catalogue.REQUEST_SLOTS, names=("max_num_active_requests",), note=_ITERATION),
        Reading(metric=catalogue.KV_CACHE_USAGE, names=("kv_cache_utilization",), merge=Merge.MAX, note=_ITERATION),
        Reading(
            metric=catalogue.KV_CACHE_CAPACITY,
            names=("kv_cache_max_blocks",),
            times=("kv_cache_tokens_per_block",),
            note=_ITERATION,
        ),
        Reading(metric=catalogue.PREFIX_CACHE_QUERIES, names=("prompt_tokens_total",)),
        Reading(metric=catalogue.PREFIX_CACHE_HITS, names=("prompt_cached_tokens_total",)),
        Reading(metric=catalogue.PROMPT_TOKENS, names=("prompt_tokens_total",), note="booked at finish"),
        Reading(metric=catalogue.PROMPT_TOKENS_CACHED, names=("prompt_cached_tokens_total",), note="booked at finish"),
        Reading(
            metric=catalogue.GENERATION_TOKENS,
            names=("generation_tokens_total",),
            note="booked at finish, not for requests with n > 1",
        ),
        Reading(metric=catalogue.PREFILL_SECONDS, names=("request_prefill_time_seconds_sum",), note="booked at finish"),
        Reading(metric=catalogue.DECODE_SECONDS, names=("request_decode_time_seconds_sum",), note="booked at finish"),
        Reading(
            metric=catalogue.SPEC_DECODE_DRAFT_TOKENS,
            names=("spec_decode_num_draft_tokens_total",),
            note="with speculative decoding",
        ),
        Reading(
            metric=catalogue.SPEC_DECODE_ACCEPTED_TOKENS,
            names=("spec_decode_num_accepted_tokens_total",),
            note="with speculative decoding",
        ),
        Reading(
            metric=catalogue.REQUESTS_FINISHED,
            names=("request_success_total",),
            label=LabelMap(
                source="finished_reason",
                target=catalogue.OUTCOME,
                values={"stop": "stop", "length": "length", "cancelled": "abort", "timeout": "error"},
                other="other",
            ),
        ),
        Reading(
            metric=catalogue.REQUESTS_FINISHED,
            names=('request_error_total{http_code=~"5..",http_code!="503"}',),
            label=always(catalogue.OUTCOME, "error"),
            note="1.3 and later, not those that broke in mid-stream",
        ),
        Reading(
            metric=catalogue.REQUESTS_REJECTED,
            names=('request_error_total{http_code=~"429|503"}',),
            label=always(catalogue.REJECTION, "other"),
            note="1.3 and later",
        ),
        Reading(metric=catalogue.TTFT, names=("time_to_first_token_seconds",)),
        Reading(metric=catalogue.TPOT, names=("time_per_output_token_seconds",), note="not for requests with n > 1"),
        Reading(metric=catalogue.REQUEST_DURATION, names=("e2e_request_latency_seconds",)),
        Reading(metric=catalogue.REQUEST_QUEUE, names=("request_queue_time_seconds",)),
        Reading(metric=catalogue.REQUEST_PREFILL, names=("request_prefill_time_seconds",), note="1.3 and later"),
        Reading(metric=catalogue.REQUEST_DECODE, names=("request_decode_time_seconds",), note="1.3 and later"),
    ),
    required=(),
    implied={
        "request_success_total": (catalogue.REQUEST_DURATION, catalogue.TTFT),
        "prompt_tokens_total": (catalogue.REQUESTS_FINISHED, catalogue.GENERATION_TOKENS, catalogue.REQUEST_PREFILL),
        "request_decode_time_seconds_count": (catalogue.TPOT,),  # both for more than one token
        "num_requests_running": (catalogue.REQUESTS_WAITING,),
    },
    left_out=(
        "request_inference_time_seconds",
        "prompt_cache_hit_tokens_total",
        "prompt_cached_tokens_per_request",
        "num_requests_completed_total",
        "kv_cache_host_utilization",
        "kv_cache_hit_rate",
        "kv_cache_free_blocks",
        "kv_cache_used_blocks",
        "kv_cache_reused_blocks_total",
        "kv_cache_missed_blocks_total",
        "kv_cache_iter_reused_blocks_total",
        "kv_cache_iter_full_reused_blocks_total",
        "kv_cache_iter_partial_reused_blocks_total",
        "kv_cache_iter_missed_blocks_total",
        "kv_cache_gen_alloc_blocks_total",
        "kv_cache_onboard_bytes_total",
        "kv_cache_offload_bytes_total",
        "kv_cache_intra_device_copy_bytes_total",
        "kv_cache_disk_prefetch_blocks_total",
        "kv_cache_iter_reuse_rate",
        "iteration_latency_seconds",  # the last one's
        "num_context_requests",
        "num_generation_requests",
        "num_paused_requests",
        "num_scheduled_requests",
        "total_context_tokens",
        "avg_decoded_tokens_per_iter",
        "prefill_batch_occupancy",
        "prefill_batch_tokens",
        "max_batch_size_static",
        "max_batch_size_runtime",
        "max_num_tokens_runtime",
        "gpu_memory_usage_bytes",
        "cpu_memory_usage_bytes",
        "pinned_memory_usage_bytes",
        "spec_decode_drafted_tokens_total",
        "spec_decode_accepted_tokens_total",
        "spec_decode_acceptance_length",
        "spec_decode_draft_overhead",
        "prefill_perplexity",
        "generation_perplexity",
        "scheduled_batch_size",
        "model_config_info",
        "parallel_config_info",
        "speculative_config_info",
        "kv_cache_config_info",
    ),
    switch_on="start trtllm-serve with return_perf_metrics: true among its LLM arguments",
    model_label="model_name",
    no_model="undefined",
    extras=(
        Extra(path="/version", every=timedelta(minutes=1)),
        Extra(path="/v1/models", every=timedelta(minutes=1)),
    ),
    facts=_facts,
)
