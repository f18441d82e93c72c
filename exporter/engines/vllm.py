"""vLLM, 0.6 to 0.33: one page with everything; names changed at 0.9.2, 0.10.2 and 0.11.0."""

import re
from collections.abc import Mapping
from datetime import timedelta

from exporter import catalogue
from exporter.dialect import Answers, Engine, Extra, Facts, LabelMap, Merge, Reading, Sleep

_COUNT = re.compile(r"[0-9]{1,15}")


def _capacity(labels: Mapping[str, str]) -> float | None:
    """Read the KV cache's size in tokens from the labels of cache_config_info; absent values are printed as None."""
    tokens = labels.get("kv_cache_size_tokens", "")
    if _COUNT.fullmatch(tokens):
        return float(tokens)
    blocks, size = labels.get("num_gpu_blocks", ""), labels.get("block_size", "")
    return float(blocks) * float(size) if _COUNT.fullmatch(blocks) and _COUNT.fullmatch(size) else None


def _facts(answers: Answers) -> Facts:
    version = answers.get("/version")
    text = version.get("version") if isinstance(version, dict) else None
    return Facts(version=text if isinstance(text, str) else None)


_OF_REQUESTS = (
    catalogue.PROMPT_TOKENS,
    catalogue.GENERATION_TOKENS,
    catalogue.REQUESTS_FINISHED,
    catalogue.TTFT,
    catalogue.ITL,
    catalogue.REQUEST_DURATION,
    catalogue.REQUEST_QUEUE,
    catalogue.REQUEST_PREFILL,
    catalogue.REQUEST_DECODE,
)
ENGINE = Engine(
    name="vllm",
    title="vLLM",
    # Ray's exporter cannot write colons and puts its own name in front; KServe puts its name in front.
    prefixes=("vllm:", "vllm_", "ray_vllm:", "ray_vllm_", "kserve_vllm:"),
    readings=(
        Reading(
            metric=catalogue.REPLICA_START_TIME,
            names=("process_start_time_seconds",),
            merge=Merge.MAX,
            note="single API server process only",
        ),
        # The production stack's router writes these two as well, by server: what it believes of engines.
        Reading(metric=catalogue.REQUESTS_RUNNING, names=('num_requests_running{server=""}',)),
        Reading(metric=catalogue.REQUESTS_WAITING, names=('num_requests_waiting{server=""}',)),
        # Up to 0.11.0 a page of several processes has one series per process, most of them 0.
        Reading(
            metric=catalogue.KV_CACHE_USAGE, names=("kv_cache_usage_perc", "gpu_cache_usage_perc"), merge=Merge.MAX
        ),
        Reading(metric=catalogue.KV_CACHE_CAPACITY, names=("cache_config_info",), merge=Merge.MAX, value=_capacity),
        Reading(metric=catalogue.PREEMPTIONS, names=("num_preemptions_total",)),
        Reading(
            metric=catalogue.PREFIX_CACHE_QUERIES,
            names=("prefix_cache_queries_total", "gpu_prefix_cache_queries_total"),
        ),
        Reading(metric=catalogue.PREFIX_CACHE_HITS, names=("prefix_cache_hits_total", "gpu_prefix_cache_hits_total")),
        Reading(metric=catalogue.PROMPT_TOKENS, names=("prompt_tokens_total",)),
        Reading(metric=catalogue.PROMPT_TOKENS_CACHED, names=("prompt_tokens_cached_total",), note="0.16 and later"),
        Reading(metric=catalogue.GENERATION_TOKENS, names=("generation_tokens_total",)),
        Reading(metric=catalogue.PREFILL_SECONDS, names=("request_prefill_time_seconds_sum",), note="booked at finish"),
        Reading(metric=catalogue.DECODE_SECONDS, names=("request_decode_time_seconds_sum",), note="booked at finish"),
        Reading(
            metric=catalogue.SPEC_DECODE_DRAFTS,
            names=("spec_decode_num_drafts_total",),
            note="with speculative decoding",
        ),
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
                values={"stop": "stop", "length": "length", "abort": "abort", "error": "error"},
                other="other",
            ),
        ),
        Reading(
            metric=catalogue.REQUESTS_REJECTED,
            names=("admission_rejections_total",),
            label=LabelMap(
                source="reason",
                target=catalogue.REJECTION,
                values={"max_num_queued_reqs": "queue_requests", "max_num_queued_tokens": "queue_tokens"},
                other="other",
            ),
            note="0.32 and later",
        ),
        Reading(metric=catalogue.TTFT, names=("time_to_first_token_seconds",)),
        Reading(metric=catalogue.ITL, names=("inter_token_latency_seconds", "time_per_output_token_seconds")),
        Reading(metric=catalogue.TPOT, names=("request_time_per_output_token_seconds",), note="0.11 and later"),
        Reading(metric=catalogue.REQUEST_DURATION, names=("e2e_request_latency_seconds",)),
        Reading(metric=catalogue.REQUEST_QUEUE, names=("request_queue_time_seconds", "time_in_queue_requests")),
        Reading(metric=catalogue.REQUEST_PREFILL, names=("request_prefill_time_seconds",)),
        Reading(metric=catalogue.REQUEST_DECODE, names=("request_decode_time_seconds",)),
        Reading(metric=catalogue.REQUEST_PROMPT_TOKENS, names=("request_prompt_tokens",)),
        Reading(metric=catalogue.REQUEST_GENERATION_TOKENS, names=("request_generation_tokens",)),
    ),
    required=(catalogue.REQUESTS_RUNNING, catalogue.REQUESTS_WAITING, catalogue.KV_CACHE_USAGE),
    implied={
        # The Rust frontend makes a series with its first use, some at the end of a request only.
        "request_success_total": _OF_REQUESTS,
        "e2e_request_latency_seconds_count": _OF_REQUESTS,
        # Other frontends write all from the start, these early on the page: so a page that is cut behind them shows it.
        "num_preemptions_total": _OF_REQUESTS,
        "cache_config_info": (*_OF_REQUESTS, catalogue.PREEMPTIONS),
        "engine_sleep_state": (
            *_OF_REQUESTS,
            catalogue.TPOT,
            catalogue.PREEMPTIONS,
        ),  # 0.11.1; the histogram came with 0.11.0
        "prompt_tokens_by_source_total": (catalogue.PROMPT_TOKENS_CACHED,),  # both 0.16.0
    },
    left_out=(
        "num_requests_waiting_by_reason",
        "num_requests_kv_fetch_by_stage",
        "engine_sleep_state",
        "external_prefix_cache_queries_total",
        "external_prefix_cache_hits_total",
        "mm_cache_queries_total",
        "mm_cache_hits_total",
        "prompt_tokens_by_source_total",
        "prompt_tokens_cached_by_source_total",
        "prompt_tokens_recomputed_total",
        "request_max_num_generation_tokens",
        "request_params_max_tokens",
        "request_params_n",
        "request_inference_time_seconds",
        "request_prefill_kv_computed_tokens",
        "request_num_preemptions",
        "iteration_tokens_total",
        "estimated_flops_per_gpu_total",
        "estimated_read_bytes_per_gpu_total",
        "estimated_write_bytes_per_gpu_total",
        "spec_decode_num_accepted_tokens_per_pos_total",
        "lora_requests_info",
        "tool_call_parser_invocations_total",
        "sleep_mode_operation_duration_seconds",
        "sleep_mode_operations_in_flight",
        "corrupted_requests_total",
        "watermark_requests_total",
        "kv_block_lifetime_seconds",
        "kv_block_idle_before_evict_seconds",
        "kv_block_reuse_gap_seconds",
        "diffusion_num_denoising_steps_total",
        "diffusion_num_canvas_positions_total",
        "diffusion_num_committed_tokens_total",
        "websocket_connections_active",
        "websocket_connections_total",
        "websocket_connection_duration_seconds",
        "nixl_xfer_time_seconds",
        "nixl_post_time_seconds",
        "nixl_bytes_transferred",
        "nixl_num_descriptors",
        "nixl_num_failed_transfers_total",
        "nixl_num_failed_notifications_total",
        "nixl_num_kv_expired_reqs_total",
        "nixl_num_notifications_after_expiry_total",
        "kv_offload_load_bytes_total",
        "kv_offload_load_time_total",
        "kv_offload_store_bytes_total",
        "kv_offload_store_time_total",
        "kv_offload_allocation_failure_total",
        "kv_offload_cpu_cache_usage_perc",
        "kv_offload_cpu_allocation_size",
        "kv_offload_cpu_cache_write_usage_perc",
        "kv_offload_cpu_cache_read_usage_perc",
        "num_requests_swapped",
        "cpu_cache_usage_perc",
        "cpu_prefix_cache_hit_rate",
        "gpu_prefix_cache_hit_rate",
        "model_forward_time_milliseconds",
        "model_execute_time_milliseconds",
        "spec_decode_draft_acceptance_rate",
        "spec_decode_efficiency",
        "spec_decode_num_emitted_tokens_total",
    ),
    switched_off=("http_request_duration_highr_seconds_count",),
    switch_on="start vLLM without --disable-log-stats",
    model_label="model_name",
    rank_label="engine",
    sleep=Sleep(name="engine_sleep_state", label="sleep_state", values=("weights_offloaded", "discard_all")),
    extras=(Extra(path="/version", every=timedelta(minutes=1)),),
    facts=_facts,
)
