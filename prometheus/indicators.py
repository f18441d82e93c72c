"""Indicators: what users were promised, as two event rates each, good and total.

In: objectives from fleet.yml. Out: `INDICATORS`, their recorded series and the rules that record them.

A ratio comes last and is always a quotient of sums; long windows are summed from recorded rates, never averaged ratios.

Goodput comes from the other indicators. Histograms are marginals: nobody knows whether a request that was late is also
one that was slow, so its good events are a lower bound, in which no request misses two objectives. The bound is taken
over the whole window: a request that is late in one tile and answered in the next must not count as good in the latter.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from exporter.buckets import layouts
from exporter.catalogue import (
    MODEL,
    OUTCOME,
    REPLICA,
    REQUESTS_FINISHED,
    REQUESTS_REJECTED,
    SLO,
    SLO_THRESHOLD,
    TPOT,
    TTFT,
    Label,
    Metric,
)
from exporter.objectives import LatencyObjective, Objectives, Slos
from prometheus import windows
from prometheus.partition import partition
from prometheus.promql import Expr, Matcher
from prometheus.series import Recorded, RecordingRule, RuleGroup, events, select, within
from prometheus.windows import Window, duration_text

__all__ = [
    "AVAILABILITY",
    "COUNTED",
    "GOODPUT",
    "INDICATORS",
    "ITL_INDICATOR",
    "TTFT_INDICATOR",
    "Indicator",
    "groups",
]

_ANSWERED = ("stop", "length", "other")
_FAILED = "error"
_COVERED = windows.TILE.span + timedelta(minutes=1)
"""The longest window that is read from scraped buckets, and the scrapes before the first that shows a new bound."""
_TILE = Label(name="tile", help="number of a tile, counted back from the present one")

Events = Callable[[Slos, Window, tuple[Label, ...]], Expr]


@dataclass(frozen=True, slots=True, kw_only=True)
class Indicator:
    """One promise. `good_events` and `total_events` build event rates, summed by the labels given.

    They build them from raw counters, or, if `derived`, from the recorded series of other indicators.
    """

    slo: str
    title: str
    objective: Callable[[Objectives], Decimal]
    good_events: Events
    total_events: Events
    derived: bool = False

    def good(self, window: Window, *, per: Label = MODEL) -> Recorded:
        """Name the recorded rate of good events, per model or per replica."""
        return self._recorded("good", "requests per second that met the objective", window, per)

    def total(self, window: Window, *, per: Label = MODEL) -> Recorded:
        """Name the recorded rate of all events, per model or per replica."""
        return self._recorded("total", "requests per second that the objective counts", window, per)

    def _recorded(self, which: str, meaning: str, window: Window, per: Label) -> Recorded:
        return Recorded(
            name=f"{per.name}:llm_{self.slo}_{which}:rate{window.name}",
            labels=(MODEL,) if per is MODEL else (MODEL, per),
            help=f"{self.title}: {meaning}, over {window.name}.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Latency:
    """What a latency is counted by: its histogram, and the bucket of its threshold."""

    slo: str
    metric: Metric
    objective: Callable[[Objectives], LatencyObjective]

    def within(self, slos: Slos, window: Window, by: tuple[Label, ...]) -> Expr:
        """Count requests within the threshold, if it is not a new one: what came before would count as missed."""
        first, *others = (bucket.rate(window).aggregate("sum", *by) for bucket in self._thresholds(slos))
        return first.union(*others).without(threshold_changes(self.slo).select().compare(">", 0), on=(MODEL,))

    def observed(self, window: Window, by: tuple[Label, ...], judged: Recorded) -> Expr:
        """Count all requests, where any are judged: rules that go by an old threshold still have no bucket for it."""
        return events(self.metric).rate(window).aggregate("sum", *by).intersect(judged.select())

    def changes(self) -> RecordingRule:
        """Record how often the threshold of a model changed, so lately that its bucket may not cover all requests."""
        threshold = select(SLO_THRESHOLD, Matcher.equal(SLO, self.slo)).changes(_COVERED)
        return RecordingRule(recorded=threshold_changes(self.slo), expr=threshold.aggregate("max", MODEL))

    def _thresholds(self, slos: Slos) -> Iterator[Expr]:
        """Select the bucket of each threshold that models share."""
        layout = layouts(slos)[self.metric.name]
        for part in partition(slos, lambda objectives: self.objective(objectives).threshold):
            yield within(self.metric, part.value.total_seconds(), layout, *part.matchers)


_TTFT = _Latency(slo="ttft", metric=TTFT, objective=lambda objectives: objectives.ttft)
_ITL = _Latency(slo="itl", metric=TPOT, objective=lambda objectives: objectives.itl)
_LATENCIES = (_TTFT, _ITL)


def threshold_changes(slo: str) -> Recorded:
    """Name how often the threshold of a latency changed lately."""
    span = duration_text(_COVERED)
    return Recorded(
        name=f"model:llm_{slo}_threshold:changes{span}",
        labels=(MODEL,),
        help=f"Changes of the threshold in fleet.yml over {span}; while there are any, the latency is not judged.",
    )


def ended(window: Window) -> Recorded:
    """Name the recorded rate of requests of a model that count for its availability and were admitted, by outcome."""
    return Recorded(
        name=f"model_outcome:llm_availability_ended:rate{window.name}",
        labels=(MODEL, OUTCOME),
        help=f"Admitted requests that ended per second, by outcome, without aborts, over {window.name}.",
    )


def rejected(window: Window) -> Recorded:
    """Name the recorded rate of requests of a model that were turned away."""
    return Recorded(
        name=f"model:llm_availability_rejected:rate{window.name}",
        labels=(MODEL,),
        help=f"Requests turned away per second, over {window.name}.",
    )


def _outcomes(window: Window, by: tuple[Label, ...]) -> tuple[Expr, Expr, Expr]:
    """Select rates of requests that got an answer, that failed, and that were turned away; aborts are no outcome here.

    For models they are read once from the scraped counters, which costs most, and recorded.
    """
    answered, failed = Matcher.among(OUTCOME, _ANSWERED), Matcher.equal(OUTCOME, _FAILED)
    if by == (MODEL,):
        return ended(window).select(answered), ended(window).select(failed), rejected(window).select()
    finished, broken_off = (select(REQUESTS_FINISHED, matcher).rate(window) for matcher in (answered, failed))
    return finished, broken_off, select(REQUESTS_REJECTED).rate(window)


def _answered(_: Slos, window: Window, by: tuple[Label, ...]) -> Expr:
    """Count requests that got an answer. Failures add nothing, but where they alone are known this is 0, not absent."""
    answered, *failures = _outcomes(window, by)
    return answered.union(*(failed * 0 for failed in failures)).aggregate("sum", *by)


def _asked(_: Slos, window: Window, by: tuple[Label, ...]) -> Expr:
    """Count requests that got an answer or should have; aborts are the client's choice.

    The union of single series, summed afterwards, keeps the total where an engine has no rejections, or only those.
    """
    answered, *failures = _outcomes(window, by)
    return answered.union(*failures).aggregate("sum", *by)


TTFT_INDICATOR: Indicator = Indicator(
    slo=_TTFT.slo,
    title="Time to first token",
    objective=lambda objectives: objectives.ttft.objective,
    good_events=_TTFT.within,
    total_events=lambda _, window, by: _TTFT.observed(window, by, TTFT_INDICATOR.good(window, per=by[-1])),
)
ITL_INDICATOR: Indicator = Indicator(
    slo=_ITL.slo,
    title="Inter-token latency",
    objective=lambda objectives: objectives.itl.objective,
    good_events=_ITL.within,
    total_events=lambda _, window, by: _ITL.observed(window, by, ITL_INDICATOR.good(window, per=by[-1])),
)
AVAILABILITY = Indicator(
    slo="availability",
    title="Availability",
    objective=lambda objectives: objectives.availability.objective,
    good_events=_answered,
    total_events=_asked,
)
COUNTED = (TTFT_INDICATOR, ITL_INDICATOR, AVAILABILITY)
"""Indicators that engines count."""


def _met_every_objective(_: Slos, window: Window, by: tuple[Label, ...]) -> Expr:
    """Count requests that met every objective, at least."""
    per = by[-1]
    good = AVAILABILITY.good(window, per=per).select()
    for latency in (TTFT_INDICATOR, ITL_INDICATOR):
        good -= latency.total(window, per=per).select() - latency.good(window, per=per).select()
    return good.call("clamp_min", 0)


GOODPUT = Indicator(
    slo="goodput",
    title="Goodput",
    objective=lambda objectives: objectives.goodput.objective,
    good_events=_met_every_objective,
    total_events=lambda _, window, by: AVAILABILITY.total(window, per=by[-1]).select(),
    derived=True,
)
INDICATORS = (*COUNTED, GOODPUT)


def groups(slos: Slos) -> tuple[RuleGroup, ...]:
    """Build the rules that record every indicator over every window, per model, and over one window per replica."""
    changes = (latency.changes() for latency in _LATENCIES)
    lately = (rule for window in (windows.NOW, *windows.SHORT) for rule in _rules(slos, window))
    of_replicas = (rule for indicator in INDICATORS for rule in _scraped(indicator, slos, windows.REPLICA, REPLICA))
    return (
        _group(windows.SHORT[-1].name, windows.TILE.interval, (*changes, *lately)),
        *(_group(window.name, window.interval, _rules(slos, window)) for window in windows.longer(slos.window)),
        _group(f"{windows.REPLICA.name}-replicas", windows.REPLICA.interval, of_replicas),
    )


def _group(name: str, interval: timedelta, rules: Iterable[RecordingRule]) -> RuleGroup:
    return RuleGroup(name=f"indicators-{name}", interval=interval, rules=tuple(rules))


def _rules(slos: Slos, window: Window) -> Iterator[RecordingRule]:
    """Record the indicators of models, from tiles or from what was scraped."""
    if not window.tiled:
        yield from _counted(window)
    for indicator in INDICATORS:
        if window.tiled and not indicator.derived:
            for name in (indicator.good, indicator.total):
                yield RecordingRule(recorded=name(window), expr=_from_tiles(name(windows.TILE), window))
        else:
            yield from _scraped(indicator, slos, window, MODEL)


def _counted(window: Window) -> Iterator[RecordingRule]:
    """Record what availability is counted from."""
    counts = select(REQUESTS_FINISHED, Matcher.among(OUTCOME, (*_ANSWERED, _FAILED)))
    for recorded, counter in ((ended(window), counts), (rejected(window), select(REQUESTS_REJECTED))):
        yield RecordingRule(recorded=recorded, expr=counter.rate(window).aggregate("sum", *recorded.labels))


def _scraped(indicator: Indicator, slos: Slos, window: Window, per: Label) -> Iterator[RecordingRule]:
    for name, build in ((indicator.good, indicator.good_events), (indicator.total, indicator.total_events)):
        recorded = name(window, per=per)
        yield RecordingRule(recorded=recorded, expr=build(slos, window, recorded.labels))


def _from_tiles(recorded: Recorded, window: Window) -> Expr:
    """Add up the rates of tiles that lie side by side; a tile without a sample adds nothing.

    A subquery takes tiles at multiples of their span, up to one span late, which a window of a few cannot afford.
    """
    tiles = window.span // windows.TILE.span
    if window not in windows.SHORT:
        return recorded.select().over_time("sum", window.span, step=windows.TILE.span) / tiles
    before = (
        recorded.select().before(windows.TILE.span * number).marked(_TILE, str(number)) for number in range(1, tiles)
    )
    return recorded.select().union(*before).aggregate("sum", *recorded.labels) / tiles
