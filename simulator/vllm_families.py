"""What vLLM 0.32.0 exposes in a single process: names, help texts, label values and bucket bounds, in page order.

Data only. The texts are vLLM's own, spelled as its page spells them.
"""

from dataclasses import dataclass

_LATENCY = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
_PER_TOKEN = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
_FIRST_TOKEN = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560),
)
_ITERATION = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
UP_TO_MAX_MODEL_LEN: tuple[float, ...] = ()  # a 1-2-5 series that ends at the longest request

HTTP_HIGH_RESOLUTION = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5),
    *(3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60),
)
HTTP_LOW_RESOLUTION = (0.1, 0.5, 1)


@dataclass(frozen=True, slots=True)
class Family:
    """One family: `labels` beyond engine and model_name, with every value that exists from the start."""

    name: str
    kind: str
    help: str
    label: str | None = None
    values: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    has_engine: bool = True


_WAITING_BY_REASON = (
    "Number of waiting requests by reason. Reason labels: 'capacity' = waiting for scheduling capacity; "
    "'deferred' = deferred by transient constraints (LoRA budget, KV transfer, blocked status). "
    "Sum of all reasons equals vllm:num_requests_waiting."
)
_SLEEP_STATE = (
    "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is awake; "
    "weights_offloaded = 1 means sleep level 1; discard_all = 1 means sleep level 2."
)
_CACHED_BY_SOURCE = (
    "Prefix-cache hit tokens by the cache tier that supplied them: device (local HBM), host (offloaded to DRAM), "
    "disk, p2p (transferred from another vLLM instance) or external_unspecified. "
    "Counted at admission; sums to vllm:prefix_cache_hits + vllm:external_prefix_cache_hits."
)
_PER_GPU = "(for Model Flops Utilization calculations)."
_MEMORY = "Estimated number of bytes {} memory per GPU " + _PER_GPU
_EXTERNAL = "External prefix cache {} from KV connector cross-instance cache sharing, in terms of number of {} tokens."


def _counter(name: str, text: str, label: str | None = None, values: tuple[str, ...] = ()) -> Family:
    return Family(name, "counter", text, label, values)


def _gauge(name: str, text: str, label: str | None = None, values: tuple[str, ...] = ()) -> Family:
    return Family(name, "gauge", text, label, values)


def _histogram(name: str, text: str, buckets: tuple[float, ...]) -> Family:
    return Family(name, "histogram", text, buckets=buckets)


FAMILIES = (
    _counter("vllm:estimated_flops_per_gpu", f"Estimated number of floating point operations per GPU {_PER_GPU}"),
    _counter("vllm:estimated_read_bytes_per_gpu", _MEMORY.format("read from")),
    _counter("vllm:estimated_write_bytes_per_gpu", _MEMORY.format("written to")),
    _gauge("vllm:num_requests_running", "Number of requests in model execution batches."),
    _gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed."),
    _gauge("vllm:num_requests_waiting_by_reason", _WAITING_BY_REASON, "reason", ("capacity", "deferred")),
    _gauge(
        *("vllm:engine_sleep_state", _SLEEP_STATE, "sleep_state"), values=("awake", "weights_offloaded", "discard_all")
    ),
    _gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage."),
    _counter("vllm:prefix_cache_queries", "Prefix cache queries, in terms of number of queried tokens."),
    _counter("vllm:prefix_cache_hits", "Prefix cache hits, in terms of number of cached tokens."),
    _counter("vllm:external_prefix_cache_queries", _EXTERNAL.format("queries", "queried")),
    _counter("vllm:external_prefix_cache_hits", _EXTERNAL.format("hits", "cached")),
    _counter("vllm:mm_cache_queries", "Multi-modal cache queries, in terms of number of queried items."),
    _counter("vllm:mm_cache_hits", "Multi-modal cache hits, in terms of number of cached items."),
    _counter("vllm:num_preemptions", "Cumulative number of preemption from the engine."),
    _counter("vllm:prompt_tokens", "Number of prefill tokens processed."),
    _counter(
        *("vllm:prompt_tokens_by_source", "Number of prompt tokens by source.", "source"),
        values=("local_compute", "local_cache_hit", "external_kv_transfer"),
    ),
    _counter("vllm:prompt_tokens_cached", "Number of cached prompt tokens (local + external)."),
    _counter(
        *("vllm:prompt_tokens_cached_by_source", _CACHED_BY_SOURCE, "source"),
        values=("device", "host", "p2p", "disk", "external_unspecified"),
    ),
    _counter("vllm:generation_tokens", "Number of generation tokens processed."),
    _counter(
        *("vllm:request_success", "Count of successfully processed requests.", "finished_reason"),
        values=("stop", "length", "abort", "error", "repetition"),
    ),
    Family(
        name="vllm:admission_rejections",
        kind="counter",
        help="Number of admission attempts rejected by a queue limit, by reason.",
        label="reason",
        values=("max_num_queued_reqs", "max_num_queued_tokens"),
        has_engine=False,
    ),
    _histogram("vllm:request_prompt_tokens", "Number of prefill tokens processed.", UP_TO_MAX_MODEL_LEN),
    _histogram("vllm:request_generation_tokens", "Number of generation tokens processed.", UP_TO_MAX_MODEL_LEN),
    _histogram("vllm:iteration_tokens_total", "Histogram of number of tokens per engine_step.", _ITERATION),
    _histogram(
        "vllm:request_max_num_generation_tokens",
        "Histogram of maximum number of requested generation tokens.",
        UP_TO_MAX_MODEL_LEN,
    ),
    _histogram("vllm:request_params_n", "Histogram of the n request parameter.", (1, 2, 5, 10, 20)),
    _histogram("vllm:request_params_max_tokens", "Histogram of the max_tokens request parameter.", UP_TO_MAX_MODEL_LEN),
    _histogram("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.", _FIRST_TOKEN),
    _histogram("vllm:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", _PER_TOKEN),
    _histogram(
        "vllm:request_time_per_output_token_seconds",
        "Histogram of time_per_output_token_seconds per request.",
        _PER_TOKEN,
    ),
    _histogram("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", _LATENCY),
    _histogram("vllm:request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", _LATENCY),
    _histogram(
        "vllm:request_inference_time_seconds", "Histogram of time spent in RUNNING phase for request.", _LATENCY
    ),
    _histogram("vllm:request_prefill_time_seconds", "Histogram of time spent in PREFILL phase for request.", _LATENCY),
    _histogram("vllm:request_decode_time_seconds", "Histogram of time spent in DECODE phase for request.", _LATENCY),
    _histogram(
        "vllm:request_num_preemptions",
        "Histogram of the number of times a request was preempted.",
        (1, 2, 3, 4, 5, 10, 20),
    ),
    _histogram(
        "vllm:request_prefill_kv_computed_tokens",
        "Histogram of new KV tokens computed during prefill (excluding cached tokens).",
        UP_TO_MAX_MODEL_LEN,
    ),
)

CACHE_CONFIG_HELP = "Information of the LLMEngine CacheConfig"
CACHE_CONFIG = {
    "_block_size_resolved": "True",
    "cache_dtype": "auto",
    "cache_hit_alignment_tokens": "None",
    "enable_mamba_shared_prefix_checkpoint": "False",
    "enable_prefix_caching": "True",
    "engine": "0",
    "gpu_memory_utilization": "0.92",
    "hash_block_size": "None",
    "is_attention_free": "False",
    "kv_cache_dtype_skip_layers": "[]",
    "kv_cache_layout": "None",
    "kv_offloading_backend": "native",
    "kv_offloading_size": "None",
    "kv_sharing_fast_prefill": "False",
    "mamba_block_size": "None",
    "mamba_cache_dtype": "auto",
    "mamba_cache_mode": "none",
    "mamba_page_size_padded": "None",
    "mamba_ssm_cache_dtype": "float32",
    "num_cpu_blocks": "None",
    "num_gpu_blocks_override": "None",
    "prefix_cache_retention_interval": "0",
    "prefix_caching_hash_algo": "sha256",
    "prefix_match_unit": "None",
    "replayssm_buffer_len": "16",
    "skip_page_size_padded": "None",
    "sliding_window": "None",
    "swa_bounded_replay": "True",
    "use_kda_recoverssm": "False",
    "use_replayssm": "False",
    "user_specified_block_size": "False",
}
