"""The /metrics page of a vLLM 0.32.0 replica: step reports in, the exposition text out.

Kept with prometheus_client, as vLLM does, so that number formats, label order and `_created` series are its own.
Client aborts reach the token counters and the first-token and inter-token histograms only: vLLM drops the request
before its per-request metrics are booked (https://github.com/vllm-project/vllm/issues/31503).
"""

import time
from collections.abc import Iterable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    Summary,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from simulator.config import Model
from simulator.sequence import Finished, Gauges, Rejection, StepReport
from simulator.vllm_families import (
    CACHE_CONFIG,
    CACHE_CONFIG_HELP,
    FAMILIES,
    HTTP_HIGH_RESOLUTION,
    HTTP_LOW_RESOLUTION,
    Family,
)

_SIZE_NOTE = "by handler. Only value of header is respected. Otherwise ignored. No percentile calculated. "
_KV_BYTES_PER_TOKEN = 147456  # keys and values of an 8B model with grouped attention, 16 bit


class _ReplicaProcess(Collector):
    """The process families, as if the replica were a process of its own that started when the replica did."""

    def __init__(self, started_at: float) -> None:
        self._started_at = started_at
        self._real = ProcessCollector(registry=None)
        self._cpu_before = time.process_time()

    def collect(self) -> Iterable[Metric]:
        for family in self._real.collect():
            if family.name == "process_start_time_seconds":
                yield GaugeMetricFamily(family.name, family.documentation, self._started_at)
            elif family.name == "process_cpu_seconds":
                yield CounterMetricFamily(
                    family.name, family.documentation, value=time.process_time() - self._cpu_before
                )
            else:
                yield family


class VllmPage:
    """The metrics of one vLLM replica, from its start to its end."""

    def __init__(self, model: Model, *, started_at: float) -> None:
        self._model = model
        self._registry = CollectorRegistry()
        GCCollector(self._registry)
        PlatformCollector(self._registry)
        self._registry.register(_ReplicaProcess(started_at))
        self._gauges: dict[str, Gauge] = {}
        self._counters: dict[str, Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        for family in FAMILIES:
            self._register(family)
        self._register_cache_config()
        self._http = _HttpMetrics(self._registry)
        self._gauges["vllm:engine_sleep_state/awake"].set(1)

    def record(self, report: StepReport) -> None:
        """Book one step."""
        for sequence in report.admitted:
            self._count("vllm:prefix_cache_queries", sequence.request.prompt_tokens)
            self._count("vllm:prefix_cache_hits", sequence.cached_tokens)
            self._count("vllm:prompt_tokens_cached_by_source/device", sequence.cached_tokens)
        for token in report.tokens:
            if token.gap is not None:
                self._observe("vllm:inter_token_latency_seconds", token.gap)
                continue
            prompt, cached = token.sequence.request.prompt_tokens, token.sequence.cached_tokens
            self._observe("vllm:time_to_first_token_seconds", max(0.0, report.at - token.sequence.arrived))
            self._count("vllm:prompt_tokens", prompt)
            self._count("vllm:prompt_tokens_cached", cached)
            self._count("vllm:prompt_tokens_by_source/local_compute", prompt - cached)
            self._count("vllm:prompt_tokens_by_source/local_cache_hit", cached)
        self._count("vllm:generation_tokens", len(report.tokens))
        self._count("vllm:num_preemptions", report.preemptions)
        self._observe("vllm:iteration_tokens_total", report.computed_prompt_tokens + len(report.tokens))
        for end in report.finished:
            self._book(end)
        self.publish(report.gauges)

    def publish(self, gauges: Gauges) -> None:
        """Show the scheduler's state; vLLM does so after a step, never on request."""
        self._gauges["vllm:num_requests_running"].set(gauges.running)
        self._gauges["vllm:num_requests_waiting"].set(gauges.waiting)
        self._gauges["vllm:num_requests_waiting_by_reason/capacity"].set(gauges.waiting)
        self._gauges["vllm:kv_cache_usage_perc"].set(gauges.kv_usage)

    def rejected(self, reason: Rejection) -> None:
        """Count a request that a queue limit refused."""
        self._count(f"vllm:admission_rejections/{reason.value}", 1)

    def answered(self, handler: str, status: int, seconds: float, request_bytes: int) -> None:
        """Count one answer of the HTTP server; the duration includes the stream."""
        self._http.answered(handler, status, seconds, request_bytes)

    def render(self, accept: str, _now: Gauges) -> tuple[bytes, str]:
        """Write the page in the format the reader asks for."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type

    def _book(self, end: Finished) -> None:
        sequence, request = end.sequence, end.sequence.request
        scheduled = end.at if sequence.scheduled_at is None else sequence.scheduled_at
        first = end.at if sequence.first_token_at is None else sequence.first_token_at
        decode = max(0.0, end.at - first)
        observations = {
            "request_prompt_tokens": request.prompt_tokens,
            "request_generation_tokens": sequence.generated,
            "request_max_num_generation_tokens": sequence.generated,
            "request_params_n": 1,
            "request_params_max_tokens": request.max_tokens,
            "request_time_per_output_token_seconds": decode / max(1, sequence.generated - 1),
            "e2e_request_latency_seconds": max(0.0, end.at - sequence.arrived),
            "request_queue_time_seconds": scheduled - sequence.arrived,
            "request_inference_time_seconds": end.at - scheduled,
            "request_prefill_time_seconds": first - scheduled,
            "request_decode_time_seconds": decode,
            "request_num_preemptions": sequence.preemptions,
            "request_prefill_kv_computed_tokens": request.prompt_tokens - sequence.cached_tokens,
        }
        for name, value in observations.items():
            self._observe(f"vllm:{name}", value)
        self._count(f"vllm:request_success/{end.outcome.value}", 1)

    def _count(self, name: str, amount: float) -> None:
        self._counters[name].inc(amount)

    def _observe(self, name: str, value: float) -> None:
        self._histograms[name].observe(value)

    def _register(self, family: Family) -> None:
        labels = {"engine": "0"} if family.has_engine else {}
        labels["model_name"] = self._model.name
        names = [*labels, *((family.label,) if family.label else ())]
        if family.kind == "histogram":
            buckets = family.buckets or one_two_five(self._model.max_model_len)
            histogram = Histogram(family.name, family.help, names, buckets=buckets, registry=self._registry)
            self._histograms[family.name] = histogram.labels(**labels)
        elif family.kind == "gauge":
            gauge = Gauge(family.name, family.help, names, registry=self._registry)
            for key, more in _children(family):
                self._gauges[key] = gauge.labels(**labels, **more)
        else:
            counter = Counter(family.name, family.help, names, registry=self._registry)
            for key, more in _children(family):
                self._counters[key] = counter.labels(**labels, **more)

    def _register_cache_config(self) -> None:
        limits = self._model.limits
        tokens = limits.blocks * limits.block_size
        labels = {
            **CACHE_CONFIG,
            "block_size": str(limits.block_size),
            "effective_attention_block_size": str(limits.block_size),
            "kv_cache_max_concurrency": str(round(tokens / self._model.max_model_len, 2)),
            "kv_cache_memory_bytes": str(tokens * _KV_BYTES_PER_TOKEN),
            "kv_cache_size_tokens": str(tokens),
            "num_gpu_blocks": str(limits.blocks),
        }
        info = Gauge("vllm:cache_config_info", CACHE_CONFIG_HELP, sorted(labels), registry=self._registry)
        info.labels(**labels).set(1)


class _HttpMetrics:
    """The families of prometheus-fastapi-instrumentator, which vLLM mounts beside its own."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "http_requests",
            "Total number of requests by method, status and handler.",
            ["handler", "method", "status"],
            registry=registry,
        )
        self._request_size = Summary(
            "http_request_size_bytes",
            f"Content length of incoming requests {_SIZE_NOTE}",
            ["handler"],
            registry=registry,
        )
        self._response_size = Summary(
            "http_response_size_bytes",
            f"Content length of outgoing responses {_SIZE_NOTE}",
            ["handler"],
            registry=registry,
        )
        self._high_resolution = Histogram(
            "http_request_duration_highr_seconds",
            "Latency with many buckets but no API specific labels. Made for more accurate percentile calculations. ",
            buckets=HTTP_HIGH_RESOLUTION,
            registry=registry,
        )
        self._low_resolution = Histogram(
            "http_request_duration_seconds",
            "Latency with only few buckets by handler. Made to be only used if aggregation by handler is important. ",
            ["handler", "method"],
            buckets=HTTP_LOW_RESOLUTION,
            registry=registry,
        )

    def answered(self, handler: str, status: int, seconds: float, request_bytes: int) -> None:
        self._requests.labels(handler=handler, method="POST", status=f"{status // 100}xx").inc()
        self._request_size.labels(handler=handler).observe(request_bytes)
        self._response_size.labels(handler=handler).observe(0)  # streams carry no Content-Length
        self._high_resolution.observe(seconds)
        self._low_resolution.labels(handler=handler, method="POST").observe(seconds)


def one_two_five(largest: int) -> tuple[float, ...]:
    """List 1, 2, 5, 10, 20, 50 and so on, up to and including `largest`."""
    bounds = [step * 10.0**power for power in range(len(str(largest))) for step in (1, 2, 5)]
    return tuple(bound for bound in bounds if bound <= largest)


def _children(family: Family) -> list[tuple[str, dict[str, str]]]:
    if family.label is None:
        return [(family.name, {})]
    return [(f"{family.name}/{value}", {family.label: value}) for value in family.values]
