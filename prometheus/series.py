"""Series: selectors of scraped and recorded series, and the recording rules that make the latter.

In: catalogue metrics. Out: `Expr` selectors; `Recorded`, `RecordingRule`, `RuleGroup`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from exporter.catalogue import Group, Kind, Label, Metric, bound_text
from prometheus.promql import LE, TARGET_LABELS, Expr, Matcher, PromQLError, Shape
from prometheus.stack import INSTANCE

__all__ = ["Recorded", "RecordingRule", "RuleGroup", "buckets", "events", "last_known", "select", "sums", "within"]

_LAST_SCRAPES = timedelta(minutes=1)


def select(metric: Metric, *matchers: Matcher) -> Expr:
    """Select the series of a counter or a gauge."""
    if metric.kind is Kind.HISTOGRAM:
        raise PromQLError(f"{metric.name} is a histogram and has no series of that name; use buckets, within or events")
    shape = Shape.COUNTER if metric.kind is Kind.COUNTER else Shape.VALUE
    return _selector(metric.name, _labels(metric), shape, matchers)


def buckets(metric: Metric, *matchers: Matcher) -> Expr:
    """Select every bucket of a histogram."""
    _require_histogram(metric)
    return _selector(metric.bucket, _labels(metric, LE), Shape.COUNTER, matchers)


def within(metric: Metric, bound: float, layout: Iterable[float], *matchers: Matcher) -> Expr:
    """Select the count of observations up to a bound, in the metric's unit; the bound has to be in the layout."""
    _require_histogram(metric)
    if bound not in layout:
        raise PromQLError(f"{metric.name} has no bucket {bound_text(bound)}; nothing would be selected")
    le = Matcher.equal(LE, bound_text(bound))
    return _selector(metric.bucket, _labels(metric, LE), Shape.COUNTER, (le, *matchers))


def events(metric: Metric, *matchers: Matcher) -> Expr:
    """Select the count of all observations of a histogram."""
    _require_histogram(metric)
    return _selector(metric.count, _labels(metric), Shape.COUNTER, matchers)


def sums(metric: Metric, *matchers: Matcher) -> Expr:
    """Select the sum of all observations of a histogram, in the metric's unit."""
    _require_histogram(metric)
    return _selector(metric.sum, _labels(metric), Shape.COUNTER, matchers)


def _require_histogram(metric: Metric) -> None:
    if metric.kind is not Kind.HISTOGRAM:
        raise PromQLError(f"{metric.name} is a {metric.kind.value}, expected a histogram")


def _labels(metric: Metric, *more: Label) -> tuple[Label, ...]:
    of_target = (INSTANCE,) if metric.group is Group.GPU else TARGET_LABELS  # cards are on the page of a host
    return (*metric.labels, *of_target, *more)


def last_known(metric: Metric, *matchers: Matcher) -> Expr:
    """Answer what the last scrapes knew, so that a lost one does not begin the delay of an alert anew."""
    return select(metric, *matchers).over_time("last", _LAST_SCRAPES)


def _selector(name: str, labels: Iterable[Label], shape: Shape, matchers: tuple[Matcher, ...]) -> Expr:
    names = frozenset(label.name for label in labels)
    for matcher in matchers:
        if matcher.label.name not in names:
            raise PromQLError(f"{name} has no label {matcher.label.name!r} (labels: {', '.join(sorted(names))})")
    inside = ",".join(matcher.text for matcher in matchers)
    return Expr(parts=(f"{name}{{{inside}}}" if inside else name,), labels=names, shape=shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A series made by a recording rule. `help` states the unit and what a sample stands for."""

    name: str
    labels: tuple[Label, ...]
    help: str

    def __post_init__(self) -> None:
        """Refuse a name without colons: those are for scraped series."""
        if ":" not in self.name:
            raise PromQLError(f"{self.name}: the name of a recorded series has colons, level:metric:operation")

    def select(self, *matchers: Matcher) -> Expr:
        """Select the recorded series."""
        return _selector(self.name, self.labels, Shape.VALUE, matchers)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingRule:
    """Records an expression; `constant` are labels the rule adds."""

    recorded: Recorded
    expr: Expr
    constant: Mapping[Label, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a rule whose series would have other labels than the recorded series promises."""
        made = self.expr.labels | {label.name for label in self.constant}
        promised = {label.name for label in self.recorded.labels}
        if made != promised:
            raise PromQLError(f"{self.recorded.name}: promises labels {sorted(promised)}, would have {sorted(made)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleGroup:
    """Recording rules that are evaluated one after the other, every `interval`."""

    name: str
    interval: timedelta
    rules: tuple[RecordingRule, ...]
