"""Histogram: one source histogram, or several that differ in labels we drop, -> one in the canonical layout."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, isnan

from exporter.buckets import Blend, blends
from exporter.catalogue import Metric, bound_text
from exporter.expose import Point
from exporter.numbers import number
from exporter.parse import Series
from exporter.shape import Labels

__all__ = ["Histogram", "histogram"]

Values = Sequence[float]
Term = int | Callable[[Values], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """One histogram on the engine's page: ascending bounds, +Inf last, and where their counts stand."""

    bounds: tuple[float, ...]
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """A histogram of our page: its lines, how to compute them, and where the source's counts stand."""

    points: tuple[Point, ...]
    terms: tuple[Term, ...]
    sources: tuple[_Source, ...]
    totals: tuple[int, ...]

    def is_sound(self, numbers: Values) -> bool:
        """Tell whether the source's counts are counts, and cumulative, and its totals those of no negative number."""
        totals = [numbers[at] for at in self.totals]
        if min(totals) < 0 or not isfinite(sum(totals)):
            return False
        for source in self.sources:
            counts = [numbers[at] for at in source.positions]
            if counts != sorted(counts) or counts[0] < 0 or not isfinite(sum(counts)):
                return False
        return True

    def has_bound(self, bound: float) -> bool:
        """Tell whether every source has this bound, so that the count at it is the engine's own."""
        return all(bound in source.bounds for source in self.sources)

    @property
    def samples(self) -> int:
        """How many samples of the engine's page this takes."""
        return sum(len(source.positions) + 2 for source in self.sources)


def histogram(
    metric: Metric,
    labels: Labels,
    layout: Sequence[float],
    parts: Mapping[str, Sequence[int]],
    series: Sequence[Series],
) -> Histogram | None:
    """Build a histogram from the positions of its `_bucket`, `_count` and `_sum` series; None if one is lacking."""
    sources = tuple(_sources(parts["_bucket"], parts["_count"], series))
    if not sources or not parts["_count"] or not parts["_sum"]:
        return None
    points = [Point(metric=metric, suffix="_bucket", labels=(*labels, ("le", bound_text(bound)))) for bound in layout]
    filled = [blends(source.bounds, layout) for source in sources]
    terms: list[Term] = [_bucket(sources, column) for column in zip(*filled, strict=True)]
    for suffix in ("_sum", "_count"):
        points.append(Point(metric=metric, suffix=suffix, labels=labels))
        terms.append(total(parts[suffix]))
    totals = (*parts["_sum"], *parts["_count"])
    return Histogram(points=tuple(points), terms=tuple(terms), sources=sources, totals=totals)


def total(positions: Sequence[int]) -> Term:
    """Answer a term that adds up positions; one position stands for itself."""
    if len(positions) == 1:
        return positions[0]
    return lambda numbers: sum(numbers[at] for at in positions)


def _sources(buckets: Sequence[int], counts: Sequence[int], series: Sequence[Series]) -> list[_Source]:
    """Sort bucket series into histograms; a histogram without +Inf ends with its count."""
    found: dict[frozenset[tuple[str, str]], dict[float, int]] = {}
    for at in buckets:
        bound = number(series[at].labels.get("le", ""))
        if bound is not None and not isnan(bound):
            found.setdefault(_without_bound(series[at]), {})[bound] = at
    for at in counts:
        found.setdefault(_without_bound(series[at]), {}).setdefault(inf, at)
    return [
        _Source(bounds=tuple(sorted(bounds)), positions=tuple(bounds[bound] for bound in sorted(bounds)))
        for bounds in found.values()
        if inf in bounds
    ]


def _without_bound(series: Series) -> frozenset[tuple[str, str]]:
    return frozenset((name, value) for name, value in series.labels.items() if name != "le")


def _bucket(sources: Sequence[_Source], column: Sequence[Blend]) -> Term:
    """Answer the term of one bound over all sources."""
    parts = [
        Blend(
            low=None if blend.low is None else source.positions[blend.low],
            high=None if blend.high is None else source.positions[blend.high],
            share=blend.share,
        )
        for source, blend in zip(sources, column, strict=True)
    ]
    if len(parts) == 1:
        [part] = parts
        return part.low if part.low is not None and not part.share else part.of
    return lambda numbers: sum(part.of(numbers) for part in parts)
