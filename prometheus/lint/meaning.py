"""Meaning: what the samples of an expression are. Data only."""

from dataclasses import dataclass, replace
from enum import Enum
from math import inf
from typing import Any

__all__ = ["Meaning", "Shape"]


class Shape(Enum):
    """What a sample is."""

    COUNTER = "a raw counter"
    SUM_OF_COUNTERS = "a sum of raw counters"
    VALUE = "values"
    RATE = "a rate"
    RATIO = "a ratio of rates"
    QUANTILE = "a quantile"
    NUMBER = "a number"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What the samples of an expression are.

    `labels` are those that its series can carry, None if they are open. `is_ranked`: one sample per data-parallel rank,
    and nobody asked for that. `is_scraped`: as it came from the last scrape, gone with a failed one. `bounds` are the
    finite bounds of the histogram it comes from. Every sample lies between `low` and `high`, or `may_be_nan`.
    """

    shape: Shape
    labels: frozenset[str] | None = None
    is_ranked: bool = False
    is_scraped: bool = False
    bounds: tuple[float, ...] = ()
    low: float = -inf
    high: float = inf
    may_be_nan: bool = False

    @property
    def is_series(self) -> bool:
        """Tell series from numbers and text."""
        return self.shape not in {Shape.NUMBER, Shape.TEXT}

    def but(self, **changes: Any) -> "Meaning":  # noqa: ANN401 - the fields of this class
        """Return the same meaning with some fields changed."""
        return replace(self, **changes)

    def has(self, label: str) -> bool:
        """Tell whether its series can carry a label."""
        return self.labels is None or label in self.labels

    def joined(self, other: "Meaning") -> "Meaning":
        """Return what a union of both is."""
        both_known = self.labels is not None and other.labels is not None
        return self.but(
            shape=self.shape if self.shape is other.shape else Shape.VALUE,
            labels=(self.labels or frozenset()) | (other.labels or frozenset()) if both_known else None,
            is_ranked=self.is_ranked or other.is_ranked,
            is_scraped=self.is_scraped and other.is_scraped,
            bounds=self.bounds if self.bounds == other.bounds else (),
            low=min(self.low, other.low),
            high=max(self.high, other.high),
            may_be_nan=self.may_be_nan or other.may_be_nan,
        )
