"""Engines with different bounds in one fleet: their histograms can be summed, and quantiles of the sum are right.

Right within the coarser bucket of the two at that value: finer than that nobody knows.
"""

from collections.abc import Mapping, Sequence
from math import ceil, inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter import catalogue
from exporter.engines import ENGINES
from tests.exporter.engines.built import body, parsed, samples

TTFT, TPOT = catalogue.TTFT.name, catalogue.TPOT.name
SOURCES = {
    "vLLM": ("vllm-0.24.0-dp2-lora", "vllm:time_to_first_token_seconds", TTFT),
    "SGLang 0.4.1": ("sglang-0.4.1", "sglang:time_to_first_token_seconds", TTFT),
    "SGLang 0.4.3": ("sglang-0.4.3", "sglang:time_to_first_token_seconds", TTFT),
    "SGLang 0.4.4": ("sglang-0.4.4", "sglang:time_to_first_token_seconds", TTFT),
    "SGLang 0.5": ("sglang-0.5.23", "sglang:time_to_first_token_seconds", TTFT),
    "SGLang, per request": ("sglang-0.5.23", "sglang:request_time_per_output_token_seconds", TPOT),
    "TensorRT-LLM prefill": ("trtllm-1.3", "trtllm_request_prefill_time_seconds", catalogue.REQUEST_PREFILL.name),
    "TGI": ("tgi-3.3.7", "tgi_request_mean_time_per_token_duration", TPOT),
}
"""A histogram of an engine: a page that has it, its name there, its name here."""
latencies = st.lists(st.floats(min_value=0, max_value=5000, allow_subnormal=False), max_size=40)


def bounds_of(source: str) -> tuple[float, ...]:
    """Answer the bounds that an engine has, +Inf last."""
    page, name, _ = SOURCES[source]
    return tuple(sorted({float(one.labels["le"]) for one in parsed(body(page)).series if one.name == f"{name}_bucket"}))


BOUNDS = {source: bounds_of(source) for source in SOURCES}
REQUIRED = {"vllm": 'vllm:num_requests_running{engine="0"} 1\n', "sglang": "sglang:num_running_reqs 1\n"}


def exposed(source: str, observed: Sequence[float]) -> dict[float, float]:
    """Answer the histogram that the exporter makes of an engine's with these observations: counts by bound."""
    page, name, ours = SOURCES[source]
    counts = {bound: sum(value <= bound for value in observed) for bound in BOUNDS[source]}
    text = "".join(f'{name}_bucket{{le="{bound}"}} {count}\n' for bound, count in counts.items())
    text += f"{name}_count {len(observed)}\n{name}_sum {sum(observed)}\n"
    engine = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt-llm", "tgi": "tgi"}[page.split("-")[0]]
    written = samples(text + REQUIRED.get(engine, ""), ENGINES[engine])
    return {
        float(series.split('le="')[1].removesuffix('"}')): count
        for series, count in written.items()
        if series.startswith(f"{ours}_bucket")
    }


def quantile(share: float, histogram: Mapping[float, float]) -> float:
    """Answer what PromQL's histogram_quantile does."""
    bounds = sorted(histogram)
    wanted = share * histogram[inf]
    at = next(index for index, bound in enumerate(bounds) if histogram[bound] >= wanted)
    if bounds[at] == inf:
        return bounds[at - 1]
    low, before = (bounds[at - 1], histogram[bounds[at - 1]]) if at else (0.0, 0.0)
    inside = histogram[bounds[at]] - before
    return low + (bounds[at] - low) * ((wanted - before) / inside if inside else 1.0)


@pytest.mark.parametrize("source", SOURCES)
@given(first=latencies, later=latencies)
def test_a_histogram_is_cumulative_and_never_falls_and_ends_with_its_count(
    source: str, first: list[float], later: list[float]
) -> None:
    before, after = exposed(source, first), exposed(source, first + later)
    for one in (before, after):
        counts = [one[bound] for bound in sorted(one)]
        assert counts == sorted(counts)
    assert all(before[bound] <= after[bound] for bound in before)
    assert (before[inf], after[inf]) == (len(first), len(first) + len(later))


@pytest.mark.parametrize("source", SOURCES)
@given(observed=latencies.filter(bool), share=st.floats(min_value=0, max_value=0.99))
def test_a_restart_of_the_engine_is_a_reset_here_and_no_count_rises_by_it(
    source: str, observed: list[float], share: float
) -> None:
    before, after = exposed(source, observed), exposed(source, observed[: int(share * len(observed))])
    assert all(after[bound] <= before[bound] for bound in before)
    assert after[inf] < before[inf]
    empty = exposed(source, [])
    assert all(empty[bound] < before[bound] for bound in before if before[bound])


@pytest.mark.parametrize("source", SOURCES)
@given(observed=latencies)
def test_nothing_beyond_the_last_finite_bound_is_moved_below_it(source: str, observed: list[float]) -> None:
    known = sum(value <= BOUNDS[source][-2] for value in observed)
    assert all(count <= known for bound, count in exposed(source, observed).items() if bound != inf)


@pytest.mark.parametrize("source", SOURCES)
@given(observed=latencies)
def test_a_count_at_a_bound_that_the_engine_has_is_its_own(source: str, observed: list[float]) -> None:
    found = exposed(source, observed)
    for bound in set(found) & set(BOUNDS[source]):
        assert found[bound] == sum(value <= bound for value in observed)


def test_all_engines_write_the_same_bounds() -> None:
    for metric in (TTFT, TPOT):
        layouts = {tuple(sorted(exposed(source, [1.0]))) for source, (_, _, ours) in SOURCES.items() if ours == metric}
        assert len(layouts) == 1


MIXED = [(one, other) for one in SOURCES for other in SOURCES if one < other and SOURCES[one][2] == SOURCES[other][2]]
some = st.lists(st.floats(min_value=0.0011, max_value=25, allow_subnormal=False), min_size=1, max_size=40)


@pytest.mark.parametrize("pair", MIXED, ids=" and ".join)
@given(ours=some, theirs=some, share=st.sampled_from((0.5, 0.9, 0.95, 0.99)))
def test_a_quantile_of_two_layouts_together_is_right_within_the_coarser_bucket(
    pair: tuple[str, str], ours: list[float], theirs: list[float], share: float
) -> None:
    one, other = pair
    first, second = exposed(one, ours), exposed(other, theirs)
    found = quantile(share, {bound: first[bound] + second[bound] for bound in first})
    both = sorted((*ours, *theirs))
    true = both[ceil(share * len(both)) - 1]
    low, high = _bucket(found, tuple(first), BOUNDS[one], BOUNDS[other])
    assert low <= true <= high


def _bucket(value: float, layout: Sequence[float], *sources: Sequence[float]) -> tuple[float, float]:
    """Answer the stretch that a layout's bucket around a value covers, seen through the bounds of its sources."""
    nearly = value * (1 - 1e-9)
    first, last = max((bound for bound in layout if bound < nearly), default=0.0), min(b for b in layout if b >= nearly)
    low = min(max((bound for bound in source if bound <= first), default=0.0) for source in sources)
    high = max(min(bound for bound in source if bound >= last) for source in sources)
    return low, high
