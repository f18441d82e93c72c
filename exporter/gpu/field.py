"""Field: where a source has a metric of a card, for whoever wants to look it up. Data only."""

from dataclasses import dataclass

from exporter.catalogue import Metric

__all__ = ["Field"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Where a source has a metric, in the source's own names or made of them: the first that is there counts.

    `detail` is the value of the metric's own label (reason, kind), if it has one.
    """

    metric: Metric
    names: tuple[str, ...]
    detail: str = ""
