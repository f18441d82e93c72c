"""The bucket contract: one layout for all, counts at known bounds as they are, nothing invented above the last one."""

from datetime import timedelta
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter import catalogue
from exporter.buckets import blends, layouts
from exporter.objectives import LatencyObjective, Objectives, Slos


def at(source: dict[float, float], target: tuple[float, ...]) -> list[float]:
    bounds = sorted(source)
    counts = [source[bound] for bound in bounds]
    return [blend.of(counts) for blend in blends(bounds, target)]


SOURCE = {0.1: 3.0, 1.0: 7.0, 2.5: 10.0, inf: 14.0}
CASES = {
    "a bound of the source keeps its count": ((1.0,), [7.0]),
    "between two bounds the count is interpolated linearly": ((2.0,), [9.0]),
    "below the first bound it rises from nothing at zero": ((0.05,), [1.5]),
    "above the last finite bound it stays what it was there": ((5.0, 2560.0), [10.0, 10.0]),
    "infinity is the count of all": ((inf,), [14.0]),
}


@pytest.mark.parametrize("case", CASES)
def test_contract(case: str) -> None:
    target, counts = CASES[case]
    assert at(SOURCE, target) == counts


def test_a_source_that_knows_only_infinity_puts_nothing_below_it() -> None:
    assert at({inf: 5.0}, (1.0, 2.0, inf)) == [0.0, 0.0, 5.0]


def test_a_source_bound_at_zero_is_used() -> None:
    assert at({0.0: 2.0, 1.0: 4.0, inf: 4.0}, (0.5,)) == [3.0]


def test_layouts_hold_every_threshold_of_the_fleet() -> None:
    strict = Objectives(
        ttft=LatencyObjective(threshold=timedelta(milliseconds=800), objective=Objectives().ttft.objective),
        itl=LatencyObjective(threshold=timedelta(milliseconds=45), objective=Objectives().itl.objective),
    )
    found = layouts(Slos(models={"m": strict}))
    assert {0.8, 2.0} <= set(found[catalogue.TTFT.name])
    assert {0.045, 0.1} <= set(found[catalogue.TPOT.name])
    assert {0.045, 0.1} <= set(found[catalogue.ITL.name])
    assert 0.045 not in found[catalogue.REQUEST_DURATION.name]
    assert all(list(layout) == sorted(set(layout)) and layout[-1] == inf for layout in found.values())


finite = st.floats(min_value=1e-4, max_value=1e5, allow_subnormal=False)
bounds = st.lists(finite, min_size=1, max_size=12, unique=True).map(lambda found: (*sorted(found), inf))
added = st.lists(st.integers(min_value=0, max_value=10**7), min_size=13, max_size=13)


def cumulative(observed: list[int]) -> list[float]:
    total, counts = 0.0, []
    for one in observed:
        total += one
        counts.append(total)
    return counts


@given(source=bounds, target=bounds, first=added, later=added)
def test_filled_histograms_stay_cumulative_and_never_fall_over_time(
    source: tuple[float, ...], target: tuple[float, ...], first: list[int], later: list[int]
) -> None:
    before = cumulative(first[: len(source)])
    after = cumulative([one + more for one, more in zip(first, later, strict=True)][: len(source)])
    filled = blends(source, target)
    old, new = ([blend.of(counts) for blend in filled] for counts in (before, after))
    assert old == sorted(old)
    assert new == sorted(new)
    assert all(earlier <= now for earlier, now in zip(old, new, strict=True))
    assert (old[-1], new[-1]) == (before[-1], after[-1])


@given(source=bounds, target=bounds, counts=added)
def test_what_lies_beyond_the_last_finite_bound_is_never_moved_below_it(
    source: tuple[float, ...], target: tuple[float, ...], counts: list[int]
) -> None:
    known = cumulative(counts[: len(source)])
    filled = [blend.of(known) for blend in blends(source, target)]
    assert all(count <= known[-2] for count, bound in zip(filled, target, strict=True) if bound != inf)
