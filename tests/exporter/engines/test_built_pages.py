"""Every generation of every dialect: recognised without configuration, complete, and right to the last count."""

from math import inf

import pytest

from exporter.normalise import recognise
from exporter.selector import selector
from tests.exporter.engines.built import GOLDEN, NAMES, body, engine_of, golden, narrow, normalised, parsed, samples

OBSERVED: dict[str, tuple[tuple[int, float], ...]] = {
    "llm_time_to_first_token_seconds": ((7, 0.05), (11, 0.13), (13, 0.7), (5, 1.7), (3, 3.1), (1, 450.0)),
    "llm_inter_token_latency_seconds": ((101, 0.009), (211, 0.033), (37, 0.09), (5, 0.45), (1, 9.5)),
    "llm_time_per_output_token_seconds": ((17, 0.031), (19, 0.088), (3, 0.6)),
    "llm_request_duration_seconds": ((13, 0.25), (11, 1.3), (12, 7.0), (3, 130.0)),
    "llm_request_queue_seconds": ((31, 0.0), (7, 0.4), (1, 6.0)),
    "llm_request_prefill_seconds": ((29, 0.12), (9, 0.9), (1, 2.2)),
    "llm_request_decode_seconds": ((21, 0.2), (15, 5.5), (3, 120.0)),
    "llm_request_prompt_tokens": ((23, 130.0), (11, 1100.0), (5, 7700.0)),
    "llm_request_generation_tokens": ((29, 41.0), (7, 310.0), (3, 1900.0)),
}
"""What tests/fixtures/pages/README.md says that all pages tell of: observations of each value."""


@pytest.mark.parametrize("name", NAMES)
def test_a_built_page_becomes_what_its_golden_file_says(name: str) -> None:
    assert narrow(name) == golden(name).read_text(encoding="utf-8"), (
        "the page changed; if that is meant, run `python -m tests.exporter.engines.built` and review the difference"
    )


def test_every_golden_file_belongs_to_a_built_page() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_engine_is_recognised_without_configuration(name: str) -> None:
    assert recognise(parsed(body(name))) is engine_of(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_supported_version_misses_nothing_and_writes_nothing_that_we_do_not_know(name: str) -> None:
    found = normalised(body(name))
    assert found.recognised
    assert (found.missing, found.unmapped, found.dropped) == ((), (), 0)


@pytest.mark.parametrize("name", NAMES)
def test_no_series_is_written_twice(name: str) -> None:
    series = [line.rpartition(" ")[0] for line in normalised(body(name)).text.splitlines() if line[0] != "#"]
    assert len(series) == len(set(series))


@pytest.mark.parametrize("name", NAMES)
def test_a_count_is_right_at_bounds_of_the_source_and_within_one_of_its_buckets_elsewhere(name: str) -> None:
    written = samples(body(name))
    for metric, told in OBSERVED.items():
        bounds, observed = _source_bounds(name, metric), _observed_on(name, metric, told)
        for series, count in written.items():
            if series.startswith(f"{metric}_bucket"):
                head, _, le = series.rpartition('le="')
                total = written[f"{head}".replace("_bucket", "_count").rstrip(",{") + "}" * ("=" in head)]
                bound = float(le.removesuffix('"}'))
                times = total / _below(observed, inf)
                at_least = _below(observed, max((edge for edge in bounds if edge <= bound), default=-1.0)) * times
                at_most = _below(observed, min(edge for edge in bounds if edge >= bound)) * times
                assert at_least - 1e-9 <= count <= at_most + 1e-9, series


@pytest.mark.parametrize("name", NAMES)
def test_histograms_are_cumulative_and_end_with_their_count(name: str) -> None:
    written = samples(body(name))
    ends = {series: count for series, count in written.items() if series.endswith('le="+Inf"}')}
    for series, count in ends.items():
        head = series.removesuffix('le="+Inf"}')
        counts = [value for other, value in written.items() if other.startswith(f'{head}le="')]
        assert counts == sorted(counts)
        assert counts[-1] == count


def _below(observed: tuple[tuple[int, float], ...], bound: float) -> int:
    return sum(times for times, value in observed if value <= bound)


def _observed_on(name: str, metric: str, told: tuple[tuple[int, float], ...]) -> tuple[tuple[int, float], ...]:
    """Answer what a page saw: TensorRT-LLM books at the end, and at first dropped a queue time of 0."""
    if name.startswith("trtllm") and metric == "llm_time_to_first_token_seconds":
        return told[:-1]
    if name in {"trtllm-1.1-unprefixed", "trtllm-1.3.0rc5"} and metric == "llm_request_queue_seconds":
        return told[1:]
    return told


def _source_bounds(name: str, metric: str) -> set[float]:
    """Answer the bounds that the engine itself has, of the first name that its page has."""
    engine = engine_of(name)
    for reading in engine.readings:
        for text in reading.names if reading.metric.name == metric else ():
            wanted = {f"{prefix}{selector(text).name}_bucket" for prefix in (*engine.prefixes, "")}
            found = {float(one.labels["le"]) for one in parsed(body(name)).series if one.name in wanted}
            if found:
                return found
    return set()
