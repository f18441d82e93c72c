"""Evidence: how far the histograms can be trusted that objectives are judged by.

In: the fleet's objectives. Out: `BEYOND`, `DOUBTFUL`, and the rules that record them.

    beyond      share of requests above the last bound, of which nobody knows by how much
    doubtful    share of requests between the two usual bounds around the threshold: where an engine has no bound at the
                threshold itself, each of them may have met the objective or missed it
"""

from collections.abc import Callable
from datetime import timedelta
from math import inf

from exporter.buckets import layouts
from exporter.catalogue import MODEL, SLO, TPOT, TTFT, Metric, bound_text
from exporter.objectives import LatencyObjective, Objectives, Slos
from prometheus.indicators import ITL_INDICATOR, TTFT_INDICATOR, Indicator
from prometheus.partition import partition
from prometheus.promql import LE, Expr, Matcher
from prometheus.recording import ITL_BUCKETS, TTFT_BUCKETS
from prometheus.series import Recorded, RecordingRule, RuleGroup
from prometheus.windows import TILE

__all__ = ["BEYOND", "DOUBTFUL", "LATENCIES", "groups"]

_HOUR = timedelta(hours=1)
_INTERVAL = timedelta(minutes=1)
_INFINITY = "+Inf"

BEYOND = Recorded(
    name="model:llm_slo_beyond:ratio1h",
    labels=(MODEL, SLO),
    help="Share of requests above the last bound of the histogram, over 1h, 0 to 1.",
)
DOUBTFUL = Recorded(
    name="model:llm_slo_doubtful:ratio1h",
    labels=(MODEL, SLO),
    help="Share of requests between the two usual bounds around the objective's threshold, over 1h, 0 to 1.",
)
LATENCIES: tuple[tuple[Indicator, Metric, Recorded, Callable[[Objectives], LatencyObjective]], ...] = (
    (TTFT_INDICATOR, TTFT, TTFT_BUCKETS, lambda objectives: objectives.ttft),
    (ITL_INDICATOR, TPOT, ITL_BUCKETS, lambda objectives: objectives.itl),
)
"""Indicators that histograms tell, with their buckets and objectives."""


def groups(slos: Slos) -> tuple[RuleGroup, ...]:
    """Build the rules; they read recorded buckets, so that their cost does not grow with the number of replicas."""
    rules: list[RecordingRule] = []
    for indicator, metric, recorded, objective in LATENCIES:
        constant = {SLO: indicator.slo}
        last = max(bound for bound in layouts(slos)[metric.name] if bound != inf)
        rules.append(RecordingRule(recorded=BEYOND, expr=1 - _share(recorded, last), constant=constant))
        first, *others = (
            _around(recorded, metric, part.value.total_seconds(), part.matchers)
            for part in partition(slos, lambda of, objective=objective: objective(of).threshold)  # type: ignore[misc]
        )
        rules.append(RecordingRule(recorded=DOUBTFUL, expr=first.union(*others), constant=constant))
    return (RuleGroup(name="evidence", interval=_INTERVAL, rules=tuple(rules)),)


def _around(recorded: Recorded, metric: Metric, threshold: float, matchers: tuple[Matcher, ...]) -> Expr:
    below = max((bound for bound in metric.buckets if bound < threshold), default=None)
    above = min((bound for bound in metric.buckets if bound > threshold), default=None)
    upper = _share(recorded, above, *matchers)
    return upper if below is None else upper - _share(recorded, below, *matchers)


def _share(recorded: Recorded, bound: float | None, *matchers: Matcher) -> Expr:
    """Divide what lies within a bound (None: within any) by everything; nothing where there are no requests."""
    everything = _count(recorded, _INFINITY, *matchers).compare(">", 0)
    return _count(recorded, _INFINITY if bound is None else bound_text(bound), *matchers) / everything


def _count(recorded: Recorded, bound: str, *matchers: Matcher) -> Expr:
    within = recorded.select(Matcher.equal(LE, bound), *matchers)
    return within.over_time("sum", _HOUR, step=TILE.span).aggregate("sum", MODEL)
