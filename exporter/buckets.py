"""Buckets: the bucket contract. In: a source's bounds, the objectives. Out: one layout per metric, and how to fill it.

The canonical layout of a histogram is the catalogue's bounds plus every SLO threshold of the fleet it is judged by, so
histograms of any engine, version and configuration can be summed, and `le` exists at every threshold.
This holds for token counts too: vLLM's bounds are the canonical ones up to its context length.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from exporter import catalogue
from exporter.catalogue import Kind
from exporter.objectives import Slos

__all__ = ["Blend", "Layouts", "blends", "layouts"]

Layouts = Mapping[str, tuple[float, ...]]
"""Ascending bounds, +Inf last, by metric name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blend:
    """The count at one bound: `low + share * (high - low)`, of source buckets by position; None stands for no count."""

    low: int | None
    high: int | None
    share: float = 0.0

    def of(self, counts: Sequence[float]) -> float:
        """Compute the count. Rounding keeps it between its neighbours, and never lets it fall while they grow."""
        low = 0.0 if self.low is None else counts[self.low]
        if not self.share:
            return low
        high = 0.0 if self.high is None else counts[self.high]
        return min(low + self.share * (high - low), high)


def layouts(slos: Slos) -> Layouts:
    """Answer the canonical layout of every histogram of the catalogue for a fleet's objectives."""
    of_fleet = (slos.default, *slos.models.values())
    ttft = {objectives.ttft.threshold.total_seconds() for objectives in of_fleet}
    itl = {objectives.itl.threshold.total_seconds() for objectives in of_fleet}
    judged = {catalogue.TTFT.name: ttft, catalogue.TPOT.name: itl, catalogue.ITL.name: itl}
    return {
        metric.name: (*sorted({*metric.buckets, *judged.get(metric.name, set())}), inf)
        for metric in catalogue.METRICS
        if metric.kind is Kind.HISTOGRAM
    }


def blends(source: Sequence[float], target: Sequence[float]) -> tuple[Blend, ...]:
    """Tell how to fill each target bound from ascending source bounds (+Inf last in both).

    A bound that the source has is used as it is. Between two, the count is interpolated linearly. Above the last finite
    source bound nothing is known, so the count stays what it was there: observations beyond it are never moved below.
    """
    finite = len(source) - 1
    filled = []
    for bound in target:
        at = bisect_left(source, bound)
        if source[at] == bound:
            filled.append(Blend(low=at, high=at))
        elif at == finite:
            filled.append(Blend(low=at - 1 if at else None, high=None))
        else:
            low = source[at - 1] if at else 0.0  # nothing that we measure is negative
            filled.append(Blend(low=at - 1 if at else None, high=at, share=(bound - low) / (source[at] - low)))
    return tuple(filled)
