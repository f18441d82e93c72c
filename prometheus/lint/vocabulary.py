"""Vocabulary: which series there are, with which labels, values and bounds.

In: the catalogue, the fleet, recording rules. Out: `Vocabulary`, which answers what is `Known` of a name. Prometheus'
and Alertmanager's own series are known by their prefixes alone: their labels are open.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from math import inf

from exporter import catalogue
from exporter.buckets import layouts
from exporter.catalogue import Group, Kind, Label, Metric, bound_text
from exporter.fleet import Fleet
from prometheus.lint.meaning import Meaning, Shape
from prometheus.promql import LE, TARGET_LABELS

__all__ = ["Known", "Vocabulary"]

_FROM_EVERY_TARGET = frozenset({"instance", "job"})
_ABOUT_THE_EXPORTER = (Group.GPU, Group.CONFIGURATION, Group.EXPORTER)
_FOREIGN_NAMES = ("up", "ALERTS", "ALERTS_FOR_STATE")
_FOREIGN_PREFIXES = ("alertmanager_", "go_", "net_conntrack_", "process_", "prometheus_", "python_", "scrape_")
_COUNTER_SUFFIXES = ("_total", "_bucket", "_count", "_sum")
_CLOSED = {label.name: label.values for label in vars(catalogue).values() if isinstance(label, Label) and label.values}


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of a series: what its samples mean, and the closed sets of its labels' values."""

    meaning: Meaning
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """Every series by name, and the names of the alerts that are loaded."""

    series: Mapping[str, Known]
    alerts: frozenset[str] = frozenset()

    @classmethod
    def of(cls, fleet: Fleet) -> "Vocabulary":
        """Know what the exporter shows for a fleet: its thresholds are bounds, its free labels are labels."""
        free = frozenset(name for replica in fleet.replicas for name in replica.labels)
        bounds = layouts(fleet.slos)
        series: dict[str, Known] = {}
        for metric in catalogue.METRICS:
            series |= _exposed(metric, bounds.get(metric.name, ()), free)
        return cls(series=series)

    def get(self, name: str) -> Known | None:
        """Return what is known of a name, or None where nothing can have it."""
        found = self.series.get(name)
        if found is None and (name in _FOREIGN_NAMES or name.startswith(_FOREIGN_PREFIXES)):
            return Known(meaning=Meaning(shape=Shape.COUNTER if name.endswith(_COUNTER_SUFFIXES) else Shape.VALUE))
        return found

    def closest(self, name: str) -> str | None:
        """Return the known name that is spelled most like an unknown one."""
        return next(iter(get_close_matches(name, self.series, n=1, cutoff=0.75)), None)

    def meaning(self, name: str | None) -> Meaning | None:
        """Return what the samples of a series mean, if it is known."""
        known = self.get(name) if name else None
        return known.meaning if known else None

    def with_recorded(self, name: str, known: Known) -> "Vocabulary":
        """Know a recorded series as well; rules that record the same name add to each other."""
        before = self.series.get(name)
        return replace(self, series={**self.series, name: _merged(before, known) if before else known})

    def values_of(self, labels: Iterable[str], sources: Iterable[str], constant: Mapping[str, str]) -> Known:
        """Return the closed sets that a series recorded from `sources` inherits, under a meaning yet to be set."""
        known = [found for source in sources if (found := self.get(source))]
        values = {}
        for label in labels:
            if label in constant:
                values[label] = _CLOSED.get(label, (constant[label],))
                continue
            closed = [each.values.get(label) for each in known if label in (each.meaning.labels or ())]
            if closed and all(closed):
                values[label] = tuple(dict.fromkeys(value for each in closed for value in each or ()))
        return Known(meaning=Meaning(shape=Shape.VALUE), values=values)


def _merged(one: Known, other: Known) -> Known:
    values = {
        label: tuple(dict.fromkeys((*one.values[label], *other.values[label])))
        for label in one.values.keys() & other.values.keys()
    }
    return Known(meaning=one.meaning.joined(other.meaning), values=values)


def _exposed(metric: Metric, bounds: tuple[float, ...], free: frozenset[str]) -> dict[str, Known]:
    """List the series of a metric: one, or the three of a histogram."""
    about_replica = metric.group not in _ABOUT_THE_EXPORTER
    target = frozenset(label.name for label in TARGET_LABELS) | free if about_replica else frozenset()
    labels = frozenset(label.name for label in metric.labels) | target | _FROM_EVERY_TARGET
    values = {
        label.name: label.values
        for label in (*metric.labels, *(TARGET_LABELS if about_replica else ()))
        if label.values
    }
    is_ranked = catalogue.RANK in metric.labels
    counter = Meaning(shape=Shape.COUNTER, labels=labels, is_ranked=is_ranked, is_scraped=True, low=0.0)
    if metric.kind is Kind.HISTOGRAM:
        finite = tuple(bound for bound in bounds or metric.buckets if bound != inf)
        bucket = counter.but(labels=labels | {LE.name}, bounds=finite)
        spelled = {LE.name: tuple(map(bound_text, (*finite, inf)))}
        return {
            metric.bucket: Known(meaning=bucket, values={**values, **spelled}),
            metric.count: Known(meaning=counter, values=values),
            metric.sum: Known(meaning=counter, values=values),
        }
    if metric.kind is Kind.COUNTER:
        return {metric.name: Known(meaning=counter, values=values)}
    high = 1.0 if metric.name.endswith("_ratio") else inf
    return {metric.name: Known(meaning=counter.but(shape=Shape.VALUE, high=high), values=values)}
