"""Windows and the time scale."""

from datetime import timedelta

import pytest

from exporter.objectives import Objectives, RatioObjective, Slos
from prometheus import windows
from prometheus.partition import partition
from prometheus.windows import INTERVAL, TimeScale, duration_text


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(days=30), "30d"),
        (timedelta(hours=36), "36h"),
        (timedelta(minutes=90), "90m"),
        (timedelta(minutes=1), "1m"),
        (timedelta(seconds=90), "90s"),
        (timedelta(milliseconds=166), "166ms"),
    ],
)
def test_a_duration_is_printed_in_its_largest_whole_unit(duration: timedelta, text: str) -> None:
    assert duration_text(duration) == text


def test_a_duration_finer_than_prometheus_can_tell_is_refused() -> None:
    with pytest.raises(ValueError, match="finer than a millisecond"):
        duration_text(timedelta(microseconds=500))


@pytest.mark.parametrize(("factor", "text"), [(1, "10s"), (60, "166ms"), (10, "1s"), (100_000, "1ms")])
def test_a_span_never_shrinks_to_nothing(factor: int, text: str) -> None:
    assert TimeScale(factor=factor).text(INTERVAL) == text


def test_zero_stays_zero_on_every_scale() -> None:
    assert TimeScale(factor=60).span(timedelta()) == timedelta()


def test_time_cannot_be_stretched() -> None:
    with pytest.raises(ValueError, match="1 or more, got 0"):
        TimeScale(factor=0)


@pytest.mark.parametrize(
    ("slo_window", "names"),
    [
        (timedelta(days=30), "5m 30m 1h 2h 6h 1d 3d 30d"),
        (timedelta(days=7), "5m 30m 1h 2h 6h 1d 3d 7d"),
        (timedelta(days=3), "5m 30m 1h 2h 6h 1d 3d"),
        (timedelta(days=1), "5m 30m 1h 2h 6h 1d"),
    ],
)
def test_every_window_is_recorded_once_up_to_that_of_the_budget(slo_window: timedelta, names: str) -> None:
    assert [window.name for window in windows.over(slo_window)] == names.split()


def test_no_recorded_series_blinks_between_two_evaluations() -> None:
    lookback = timedelta(minutes=5)
    assert all(2 * window.interval < lookback for window in windows.over(timedelta(days=30)))


def test_models_that_differ_from_the_default_in_nothing_stay_in_its_part() -> None:
    strict, other = (
        Objectives(availability=RatioObjective(objective=Objectives().availability.objective / divisor))
        for divisor in (2, 4)
    )
    slos = Slos(models={"b": strict, "same": Objectives(), "a": strict, "c": other})
    parts = partition(slos, lambda objectives: objectives.availability.objective)
    assert [[matcher.text for matcher in part.matchers] for part in parts] == [
        ['model!~"a|b|c"'],
        ['model=~"a|b"'],
        ['model="c"'],
    ]


def test_without_exceptions_there_is_one_part_for_every_model() -> None:
    [part] = partition(Slos(), lambda objectives: objectives.ttft)
    assert part.matchers == ()


def test_tiles_that_are_counted_back_lie_side_by_side() -> None:
    tile = windows.TILE
    assert not tile.span % tile.interval
    assert {window.interval for window in (windows.NOW, *windows.SHORT)} == {tile.interval}
    assert not any(window.span % tile.span for window in windows.over(timedelta(days=30)))
