"""Evidence: the numbers that objectives are judged by may be missing, doubtful, or not what they seem."""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from functools import partial

from alerts.annotations import MODEL_NAME
from alerts.evidence import BEYOND, DOUBTFUL, LATENCIES
from alerts.model import Alert, AlertGroup, AlertRule, Louder, Severity
from alerts.objectives import burn
from exporter.catalogue import (
    ENGINE,
    MISSING,
    MISSING_SERIES,
    MODEL,
    REQUEST_DURATION,
    SLO,
    SLO_THRESHOLD_EXACT,
    TTFT,
    Metric,
)
from exporter.fleet import Fleet
from exporter.objectives import Objectives
from prometheus.indicators import COUNTED, TTFT_INDICATOR, Indicator
from prometheus.partition import partition
from prometheus.promql import Expr, Matcher
from prometheus.recording import GENERATION_TOKEN_RATE
from prometheus.series import events, select, sums
from prometheus.windows import LONG, SHORT, TILE

__all__ = ["GROUP", "silence"]

_DAY = LONG[2]
_HALF_HOUR = SHORT[1]
_LATELY = timedelta(minutes=10)
_SPENT_UNSEEN = Decimal("0.02")
_LEAST, _MOST = timedelta(minutes=15), timedelta(hours=1)
_AT_ONCE = Decimal("0.001")
_BLIND = Louder(alertname="LLMMonitoringBlind", labels=())
_SLO_NAME = f"{{{{ $labels.{SLO.name} }}}}"


def silence(indicator: Indicator, slo_window: timedelta, objectives: Objectives) -> timedelta:
    """Return how long an indicator may be silent: a complete failure would spend 2 % of the budget in that time.

    In whole minutes, a quarter of an hour at least, for a long answer to end, and an hour at most.
    """
    share = _SPENT_UNSEEN * (1 - indicator.objective(objectives))
    minutes = int(slo_window // timedelta(minutes=1) * share)
    return min(max(timedelta(minutes=minutes), _LEAST), _MOST)


def _no_data(fleet: Fleet) -> Expr:
    """Find indicators that had requests within a day and have none now, though tokens flow all the time.

    A model without requests gives no tokens, and an engine that cannot tell never had a request of the indicator.
    """

    def silent() -> Iterator[Expr]:
        for indicator in COUNTED:
            of_slo = Matcher.equal(SLO, indicator.slo)
            for part in partition(fleet.slos, partial(silence, indicator, fleet.slos.window)):
                had = burn(_DAY).select(of_slo, *part.matchers)
                has = burn(TILE).select(of_slo).over_time("count", part.value)
                flowing = GENERATION_TOKEN_RATE.select().over_time("min", part.value).compare(">", 0)
                yield had.without(has).intersect(flowing, on=(MODEL,))
        yield burn(_HALF_HOUR).select(Matcher.equal(SLO, TTFT_INDICATOR.slo)).intersect(_impossible(), on=(MODEL,))

    first, *others = silent()
    return first.union(*others)


def _impossible() -> Expr:
    """Find models whose first tokens seem to come at once while requests take seconds: both stamps are the same."""
    at_once = _mean(TTFT).compare("<", _AT_ONCE)
    return at_once.intersect(_mean(REQUEST_DURATION).compare(">", 1))


def _mean(metric: Metric) -> Expr:
    taken, observed = (of(metric).rate(_HALF_HOUR).aggregate("sum", MODEL) for of in (sums, events))
    return taken / observed.compare(">", 0)


def _renamed(_: Fleet) -> Expr:
    """Count the replicas that lack a series, by engine: an upgrade changes many of them at once."""
    lacking = select(MISSING_SERIES).over_time("max", _LATELY).compare("==", 1)
    return lacking.aggregate("count", ENGINE, MISSING)


def _saturated(fleet: Fleet) -> Expr:
    first, *others = (
        BEYOND.select(*part.matchers).compare(">", part.value)
        for part in partition(fleet.thresholds, lambda of: of.saturated)
    )
    return first.union(*others)


def _not_exact(fleet: Fleet) -> Expr:
    """Find thresholds without a bound where more requests are in doubt than may be bad."""

    def doubtful() -> Iterator[Expr]:
        for indicator, _, _, objective in LATENCIES:
            for part in partition(fleet.slos, lambda of, objective=objective: 1 - objective(of).objective):  # type: ignore[misc]
                of_slo = Matcher.equal(SLO, indicator.slo)
                yield DOUBTFUL.select(of_slo, *part.matchers).compare(">", part.value)

    first, *others = doubtful()
    inexact = select(SLO_THRESHOLD_EXACT).over_time("min", _LATELY).aggregate("min", MODEL, SLO).compare("==", 0)
    return first.union(*others).intersect(inexact)


GROUP = AlertGroup(
    name="evidence",
    interval=timedelta(minutes=1),
    alerts=(
        Alert(
            name="LLMIndicatorNoData",
            meaning="A model gives tokens, and one of its objectives is judged by nothing, or by impossible numbers.",
            rules=(
                AlertRule(
                    severity=Severity.TICKET,
                    expression=_no_data,
                    delay=timedelta(minutes=5),
                    every=timedelta(minutes=2),
                ),
            ),
            summary=f"{MODEL_NAME}: the objective {_SLO_NAME} cannot be judged",
            description=lambda _: (
                f"{MODEL_NAME} is in use and had requests that count for {_SLO_NAME} within a day; now there are none,"
                " or their times are impossible. Its budget alerts cannot fire."
            ),
            board="fleet",
            quiet_while=(_BLIND,),
        ),
        Alert(
            name="LLMMetricsRenamed",
            meaning="Replicas lack a series their engine is known to provide, as after an upgrade that renamed it.",
            rules=(AlertRule(severity=Severity.TICKET, expression=_renamed, delay=timedelta(minutes=5)),),
            summary=f"{{{{ $labels.{ENGINE.name} }}}} no longer provides {{{{ $labels.{MISSING.name} }}}}",
            description=lambda _: (
                f"{{{{ $value }}}} replicas lack {{{{ $labels.{MISSING.name} }}}} under every name that is known."
                " What depends on it is missing on boards and in alerts."
            ),
            board="fleet",
            quiet_while=(_BLIND,),
        ),
        Alert(
            name="LLMHistogramSaturated",
            meaning="Many requests take longer than the last bound of a histogram: its percentiles are too low.",
            rules=(AlertRule(severity=Severity.TICKET, expression=_saturated, delay=timedelta(minutes=15)),),
            summary=f"{MODEL_NAME}: the histogram of {_SLO_NAME} ends too early",
            description=lambda _: (
                "Over 1h {{ $value | humanizePercentage }} of the requests were beyond its last bound; by how much,"
                " nobody knows."
            ),
            board="fleet",
        ),
        Alert(
            name="LLMThresholdNotExact",
            meaning="No bucket ends at an objective's threshold, and more requests are in doubt than may be bad.",
            rules=(AlertRule(severity=Severity.TICKET, expression=_not_exact, delay=timedelta(hours=1)),),
            summary=f"{MODEL_NAME}: whether requests meet {_SLO_NAME} is guessed",
            description=lambda _: (
                "Over 1h {{ $value | humanizePercentage }} of the requests lay between the two bounds around the"
                " threshold: more than may miss the objective, and each is counted as one or the other by guess."
            ),
            board="fleet",
        ),
    ),
)
