"""SGLang, 0.4 to 0.5: workers write one page together; series appear with their first use, and names changed often.

Families of the scheduler repeat themselves for each tensor, pipeline and expert rank, those of the tokenizer do not.
With priorities, gauges of the scheduler have a total, whose priority is empty, beside a part for each priority; all
else is in parts only.
"""

from datetime import timedelta

from exporter import catalogue
from exporter.dialect import Answers, Engine, Extra, Facts, LabelMap, Merge, Reading, always

# The label holds any path that a client asks for, and /health answers 503 while the engine starts.
_INFERENCE = (
    'endpoint=~"/generate|/encode|/invocations|/v1/(chat/)?completions|/v1/(responses|messages|embeddings|rerank)"'
)
_AT_FINISH = "booked at finish"
_STAGE = "prefill_forward: the last chunk of a chunked prefill"


def _older(answers: Answers) -> bool:
    return "/server_info" not in answers


def _facts(answers: Answers) -> Facts:
    told = answers.get("/server_info", answers.get("/get_server_info"))
    version = told.get("version") if isinstance(told, dict) else None
    return Facts(version=version if isinstance(version, str) else None)


ENGINE = Engine(
    name="sglang",
    title="SGLang",
    prefixes=("sglang:", "sglang_"),
    readings=(
        Reading(metric=catalogue.REQUESTS_RUNNING, names=('num_running_reqs{priority=""}',)),
        Reading(metric=catalogue.REQUESTS_WAITING, names=('num_queue_reqs{priority=""}',)),
        Reading(metric=catalogue.KV_CACHE_USAGE, names=("full_token_usage", "token_usage"), merge=Merge.MAX),
        Reading(
            metric=catalogue.KV_CACHE_CAPACITY, names=("max_total_num_tokens",), merge=Merge.MAX, note="0.5.6 and later"
        ),
        Reading(metric=catalogue.PREEMPTIONS, names=("num_retracted_requests_total",), note="0.5.7 and later"),
        Reading(
            metric=catalogue.PREFIX_CACHE_QUERIES,
            names=(
                "prefill_effective_tokens_total",
                'realtime_tokens_total{mode=~"prefill_.*"}',
                "prompt_tokens_total",
            ),
        ),
        Reading(
            metric=catalogue.PREFIX_CACHE_HITS,
            names=(
                'prefill_effective_tokens_total{mode=~".*_hit"}',
                'realtime_tokens_total{mode="prefill_cache"}',
                'cached_tokens_total{cache_source=~"|total"}',
            ),
        ),
        Reading(metric=catalogue.PROMPT_TOKENS, names=("prompt_tokens_total",), note=_AT_FINISH),
        Reading(
            metric=catalogue.PROMPT_TOKENS_CACHED,
            names=('cached_tokens_total{cache_source=~"|total"}',),
            note=f"0.4.4 and later, {_AT_FINISH}",
        ),
        Reading(
            metric=catalogue.GENERATION_TOKENS,
            names=('realtime_tokens_total{mode="decode"}', "generation_tokens_total"),
            note=f"{_AT_FINISH} before 0.5.7",
        ),
        Reading(
            metric=catalogue.PREFILL_SECONDS,
            names=('per_stage_req_latency_seconds_sum{stage="prefill_forward"}',),
            note=_STAGE,
        ),
        Reading(
            metric=catalogue.SPEC_DECODE_DRAFTS,
            names=("spec_verify_calls_total",),
            note=f"0.5.13 and later, {_AT_FINISH}",
        ),
        # It tells no reasons. Requests that were aborted before they ran are not in it.
        Reading(
            metric=catalogue.REQUESTS_FINISHED,
            names=("num_requests_total",),
            label=always(catalogue.OUTCOME, "other"),
            note="without reason: other",
        ),
        Reading(
            metric=catalogue.REQUESTS_FINISHED,
            names=("num_aborted_requests_total",),
            label=always(catalogue.OUTCOME, "abort"),
            note="calls to abort, 0.4.8 and later",
        ),
        Reading(
            metric=catalogue.REQUESTS_FINISHED,
            names=(f'http_responses_total{{{_INFERENCE},status_code=~"5..",status_code!="503"}}',),
            label=always(catalogue.OUTCOME, "error"),
            note="0.5.7 and later, not those that broke in mid-stream",
        ),
        Reading(
            metric=catalogue.REQUESTS_REJECTED,
            names=(f'http_responses_total{{{_INFERENCE},status_code=~"429|503"}}',),
            label=LabelMap(
                source="status_code", target=catalogue.REJECTION, values={"503": "queue_requests"}, other="other"
            ),
            note="0.5.7 and later",
        ),
        Reading(metric=catalogue.TTFT, names=("time_to_first_token_seconds",)),
        Reading(metric=catalogue.ITL, names=("inter_token_latency_seconds", "time_per_output_token_seconds")),
        Reading(metric=catalogue.TPOT, names=("request_time_per_output_token_seconds",), note="0.5.22 and later"),
        Reading(metric=catalogue.REQUEST_DURATION, names=("e2e_request_latency_seconds",)),
        Reading(metric=catalogue.REQUEST_QUEUE, names=("queue_time_seconds", "queue_time_s"), note="0.5.2 and later"),
        Reading(
            metric=catalogue.REQUEST_PREFILL,
            names=('per_stage_req_latency_seconds{stage="prefill_forward"}',),
            note=_STAGE,
        ),
        Reading(metric=catalogue.REQUEST_PROMPT_TOKENS, names=("prompt_tokens_histogram",), note="0.4.8 and later"),
        Reading(
            metric=catalogue.REQUEST_GENERATION_TOKENS, names=("generation_tokens_histogram",), note="0.4.8 and later"
        ),
    ),
    required=(catalogue.REQUESTS_RUNNING, catalogue.REQUESTS_WAITING, catalogue.KV_CACHE_USAGE),
    implied={
        "num_requests_total": (catalogue.REQUEST_DURATION, catalogue.PROMPT_TOKENS, catalogue.GENERATION_TOKENS),
        # A prefill node hands the request on before its first token.
        'num_requests_total{engine_type!="prefill"}': (catalogue.TTFT,),
    },
    left_out=(
        "num_running_reqs_offline_batch",
        "num_grammar_queue_reqs",
        "num_so_requests_total",
        "num_used_tokens",
        "swa_token_usage",
        "mamba_usage",
        "kv_available_tokens",
        "kv_evictable_tokens",
        "kv_used_tokens",
        "page_size",
        "num_pages",
        "context_len",
        "cache_config_info",
        "cache_hit_rate",
        "gen_throughput",
        "avg_request_queue_latency",  # a gauge: the last one's
        "func_latency_seconds",
        "uncached_prompt_tokens_histogram",
        "num_retracted_reqs",
        "num_paused_reqs",
        "total_retracted_reqs",
        "num_retracted_input_tokens_total",
        "num_retracted_output_tokens_total",
        "spec_accept_length",
        "spec_accept_rate",
        "utilization",
        "new_token_ratio",
        "is_cuda_graph",
        "http_requests_total",
        "http_requests_active",
        "engine_startup_time",
        "engine_load_weights_time",
        "startup_time_seconds",
        "gpu_execution_seconds_total",
        "forward_execution_seconds_total",
        "scheduler_idle_seconds_total",
        "startup_available_gpu_memory_gb",
        "weight_memory_usage_gb",
        "kv_cache_memory_usage_gb",
        "graph_memory_usage_gb",
        "spec_num_steps",
        "spec_num_draft_tokens",
        "spec_cap_length",
        "spec_block_accept_length",
        "lora_pool_slots_used",
        "lora_pool_slots_total",
        "lora_pool_utilization",
        "fwd_occupancy",
        "decode_sum_seq_lens",
        "max_running_requests_under_SLO",
        "scheduler_process_cpu_seconds_total",
        "scheduler_stage_seconds_total",
        "cuda_graph_passes_total",
        "num_prefill_bootstrap_queue_reqs",
        "num_prefill_inflight_queue_reqs",
        "num_decode_prealloc_queue_reqs",
        "num_decode_transfer_queue_reqs",
        "num_decode_host_receive_queue_reqs",
        "num_bootstrap_failed_reqs_total",
        "num_transfer_failed_reqs_total",
        "num_prefill_retries_total",
        "hicache_host_used_tokens",
        "hicache_host_total_tokens",
        "prefetched_tokens_total",
        "backuped_tokens_total",
        "evicted_tokens_total",
        "load_back_tokens_total",
        "startup_cuda_graph_time_seconds",
        "estimated_flops_per_gpu_total",
        "estimated_read_bytes_per_gpu_total",
        "estimated_write_bytes_per_gpu_total",
        "routing_key_running_req_count",
        "routing_key_all_req_count",
        "num_prefill_infight_queue_reqs",
        "num_prefill_prealloc_queue_reqs",
        "num_bootstrap_failed_reqs",
        "num_transfer_failed_reqs",
    ),
    switch_on="start SGLang with --enable-metrics",
    model_label="model_name",
    rank_label="dp_rank",
    replicated=("tp_rank", "pp_rank", "moe_ep_rank"),
    extras=(
        Extra(path="/server_info", every=timedelta(minutes=10)),
        Extra(path="/get_server_info", when=_older, every=timedelta(minutes=10)),
    ),
    facts=_facts,
)
