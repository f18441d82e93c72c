"""Columns: the series of another GPU exporter's page, sorted by card, and what becomes of each. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from exporter.gpu.field import Field
from exporter.gpu.reading import Card, Values
from exporter.parse import Page
from exporter.tame import tamed

__all__ = ["MEBIBYTE", "Column", "Row", "rows", "take"]

MEBIBYTE = 2.0**20


@dataclass(slots=True, kw_only=True)
class Row:
    """What a page says about one card: name -> value, and labels by which the card can be described."""

    numbers: dict[str, float] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Field):
    """A field that is one number of a page, times a factor into the metric's unit."""

    factor: float = 1.0


def rows(
    page: Page,
    place: Callable[[str, Mapping[str, str]], tuple[Card, str] | None],
    is_blank: Callable[[float], bool],
) -> dict[Card, Row]:
    """Sort a page by cards; `place` answers the card of a series and the name it goes by, or None for a stranger.

    A number that stands for "not available" is as if it were not there. A card that several pods share is on the page
    once for each of them: the first one counts.
    """
    found: dict[Card, Row] = {}
    for series, value in zip(page.series, page.values, strict=True):
        placed = place(series.name, series.labels)
        if placed is not None:
            card, name = Card(gpu=tamed(placed[0].gpu), partition=tamed(placed[0].partition)), placed[1]
            row = found.setdefault(card, Row())
            if not is_blank(value):
                row.numbers.setdefault(name, value)
            for label, text in series.labels.items():
                row.labels.setdefault(label, tamed(text))
    return found


def take(row: Row, columns: Iterable[Column], values: Values) -> None:
    """Take every column that the row has."""
    for column in columns:
        number = next((row.numbers[name] for name in column.names if name in row.numbers), None)
        values.take(column.metric, None if number is None else number * column.factor, column.detail)
