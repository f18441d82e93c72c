"""Pages that are always compared, and that others are invented from: captures of engines, faults met in the field."""

from collections.abc import Iterator

from bench.differential.exposition import Exposition
from running.paths import ROOT

__all__ = ["FIELD_FAULTS", "OPENMETRICS_PAGES", "captures", "known_pages"]

_CAPTURES = ROOT / "tests" / "fixtures" / "captures"

FIELD_FAULTS: dict[str, bytes] = {
    "signed nan": (
        b"# TYPE llamacpp:n_busy_slots_per_decode counter\nllamacpp:n_busy_slots_per_decode -nan\n"
        b"# TYPE llamacpp:requests_processing gauge\nllamacpp:requests_processing 1\n"
    ),
    "page in JSON quotes": (
        b'"# HELP llamacpp:requests_processing x\\n# TYPE llamacpp:requests_processing gauge\\n'
        b'llamacpp:requests_processing 0\\n"\n'
    ),
    "six digits": b"# TYPE llamacpp:tokens_predicted_total counter\nllamacpp:tokens_predicted_total 1.73456e+06\n",
    "line break in a label": b'vllm:num_requests_running{model_name="line one\nline two"} 1\nb 1\n',
    "quotes, braces, hashes and other alphabets in labels": (
        b'vllm:num_requests_running{model_name="a}b,{c=\\"d\\" # e",engine="0"} 3\n'
        b'vllm:num_requests_running{model_name="C:\\\\models\\\\q4.gguf",engine="0"} 1\n'
        + 'vllm:num_requests_running{model_name="模型-é😀",engine="0",} 2\n'.encode()
    ),
    "# EOF missing": b"# TYPE a counter\na_total 1\n",
    "CRLF": b"# TYPE a gauge\r\na 1\r\n",
    "byte-order mark": b"\xef\xbb\xbfa 1\n",
    "not UTF-8": b'a{m="\xff\xfe"} 1\nb 1\n',
    "one series per rank": b'vllm:kv_cache_usage_perc{engine="0"} 0.98\nvllm:kv_cache_usage_perc{engine="1"} 0.10\n',
    "_created companions": (
        b'vllm:request_success_total{finished_reason="stop"} 1.734561e+06\n'
        b"# TYPE vllm:request_success_created gauge\n"
        b'vllm:request_success_created{finished_reason="stop"} 1.7959668e+09\n'
    ),
    "no number": (
        b'DCGM_FI_DEV_FB_USED{gpu="0"} N/A\nDCGM_FI_DEV_GPU_TEMP{gpu="0"} 41\n'
        b'dcgm_nvlink_replay_error_count_total{gpu="0"}\n'
    ),
    "comments only": (
        b"# HELP vllm:num_requests_running Number of requests in model execution batches.\n"
        b"# TYPE vllm:num_requests_running gauge\n"
    ),
    "buckets that fall": (
        b"# TYPE sglang:inter_token_latency_seconds histogram\n"
        b'sglang:inter_token_latency_seconds_bucket{le="0.1"} 5\n'
        b'sglang:inter_token_latency_seconds_bucket{le="1.0"} 3\n'
        b'sglang:inter_token_latency_seconds_bucket{le="+Inf"} -2\n'
        b"sglang:inter_token_latency_seconds_count -2\n"
    ),
    "a printed dict as label": (
        b"tgi_batch_inference_duration_bucket{le=\"0.02\",method=\"{'method': 'prefill'}\"} 112\n"
        b'tgi_request_mean_time_per_token_duration_bucket{le="0.05"} 90\ntgi_queue_size 0\n'
    ),
    "empty": b"",
    "HTML": b"<!doctype html>\n<html><body>Metrics are at /metrics</body></html>\n",
    "JSON": b'{"error":{"code":501,"message":"This server does not support metrics endpoint.","type":"not_supported"}}',
    "series twice": b'a{b="c"} 1\na{b="c"} 2\n',
    "label twice": b'a{b="c",b="d"} 1\n',
    "label twice, once empty": b'a{b="",b="d"} 1\n',
    "time stamps": b"a 1 1767225600000\nb 2 0\nc 3 99999999999999999999\n",
    "exemplar in text": b'a_bucket{le="1"} 1 # {trace_id="x"} 0.5\n',
}

OPENMETRICS_PAGES: tuple[bytes, ...] = (
    b"# TYPE a counter\n# HELP a Things.\na_total 1\na_created 1767225600.5\n# EOF\n",
    (
        b"# TYPE d_seconds histogram\n# UNIT d_seconds seconds\n"
        b'd_seconds_bucket{le="0.5"} 1 # {trace_id="ab"} 0.3 17.5\n'
        b'd_seconds_bucket{le="+Inf"} 2 # {} 7\nd_seconds_sum 7.3\nd_seconds_count 2\n# EOF\n'
    ),
    b'# TYPE s stateset\ns{s="ready"} 1\ns{s="loading"} 0\n# TYPE i info\ni_info{version="1"} 1\n# EOF',
    b'# TYPE g gaugehistogram\ng_bucket{le="1"} 1\ng_gcount 1\ng_gsum 0.5 1767225600.123\n# EOF\n',
    b"# TYPE u unknown\nu NaN\nu2 -Inf -5\n# EOF\n",
    b"# EOF\n",
    b"# EOF",
    b"a 1\n# EOF\nb 2\n",
    b"a 1\n\n# EOF\n",
    b"# a comment\na 1\n# EOF\n",
    b"a\t1\n# EOF\n",
)


def captures() -> Iterator[bytes]:
    """Answer every page that was captured from a real engine."""
    for path in sorted(_CAPTURES.glob("*/*.prom")):
        yield path.read_bytes()


def known_pages() -> list[Exposition]:
    """Answer every known page, in each format that could be promised for it."""
    texts = [*captures(), *FIELD_FAULTS.values()]
    return [
        *(Exposition(body=body) for body in (*texts, *OPENMETRICS_PAGES)),
        *(Exposition(body=body, openmetrics=True) for body in (*texts, *OPENMETRICS_PAGES)),
        *(Exposition(body=body + b"# EOF\n", openmetrics=True) for body in texts),
    ]
