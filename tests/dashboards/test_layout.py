"""Layout: no two panels share a place."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from dashboards.fields import NO_TRAFFIC, Look
from dashboards.layout import Row, lay_out
from dashboards.panels import Query, Stat

SIZES = st.lists(st.lists(st.tuples(st.integers(1, 24), st.integers(1, 12)), max_size=7), max_size=4)


def stat(width: int, height: int) -> Stat:
    look = Look(unit="none", empty=NO_TRAFFIC)
    return Stat(title="t", description="d", look=look, queries=[Query(expr="up")], width=width, height=height)


def rows(sizes: list[list[tuple[int, int]]]) -> list[Row]:
    return [Row(title="row", panels=[stat(*size) for size in row]) for row in sizes]


def overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
    above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
    return not (beside or above)


@given(SIZES)
def test_panels_never_overlap_nor_leave_the_grid(sizes: list[list[tuple[int, int]]]) -> None:
    places = [panel["gridPos"] for panel in lay_out(rows(sizes))]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    assert not [pair for pair in combinations(places, 2) if overlap(*pair)]


@given(SIZES)
def test_ids_count_from_one_in_reading_order(sizes: list[list[tuple[int, int]]]) -> None:
    panels = lay_out(rows(sizes))
    assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
    assert [panel["gridPos"]["y"] for panel in panels] == sorted(panel["gridPos"]["y"] for panel in panels)


def test_a_panel_that_does_not_fit_beside_the_others_starts_a_new_line_below_the_tallest() -> None:
    heading, first, second, third = lay_out(rows([[(12, 4), (8, 6), (8, 3)]]))
    assert heading["type"] == "row"
    assert [panel["gridPos"] for panel in (first, second, third)] == [
        {"h": 4, "w": 12, "x": 0, "y": 1},
        {"h": 6, "w": 8, "x": 12, "y": 1},
        {"h": 3, "w": 8, "x": 0, "y": 7},
    ]
