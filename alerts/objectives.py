"""Objectives: how fast each error budget burns, and how much of it is left.

In: indicators and their objectives. Out: `BUDGET_LEFT`, `EXHAUSTION`, `GOOD_NOW`, `burn(window)`, `spend(window)`, and
their rules.

    burn rate = share of bad requests / (1 - objective)
    spend rate = bad requests / usual requests / (1 - objective) = burn rate * how busy the window was
    time to exhaustion = budget left * SLO window / burn rate of the last hour

At rate 1 the budget lasts exactly the SLO window. A budget is a number of requests: the same share of bad ones spends
more of it in a busy hour than at night, which only the spend rate tells. What is usual is the mean over the part of the
SLO window that was seen, so a young fleet is measured by what is known of it. Objectives stay decimals, so the divisor
is exact in the rule.
"""

from datetime import timedelta
from decimal import Decimal

from exporter.catalogue import MODEL, SLO
from exporter.objectives import Slos
from prometheus import windows
from prometheus.indicators import COUNTED, INDICATORS, Indicator
from prometheus.partition import partition
from prometheus.promql import Expr, Matcher, Seconds
from prometheus.series import Recorded, RecordingRule, RuleGroup
from prometheus.windows import Window

__all__ = ["BUDGET_LEFT", "ENOUGH_NOW", "EXHAUSTION", "GOOD_NOW", "SPENDING", "burn", "groups", "spend", "usual"]

_LAST_HOUR = windows.SHORT[-1]
SPENDING = tuple(window.span for window in (_LAST_HOUR, *windows.LONG[1:]))
"""Spans over which the spend rate is recorded, also where one of them is the SLO window."""

BUDGET_LEFT = Recorded(
    name="model:llm_slo_budget_left:ratio",
    labels=(MODEL, SLO),
    help="Share of the error budget of the SLO window that is left, 1 (untouched) to below 0 (overspent).",
)
EXHAUSTION = Recorded(
    name="model:llm_slo_budget_exhaustion:seconds",
    labels=(MODEL, SLO),
    help="Seconds until the error budget is gone if it burns on as in the last hour; absent while it does not burn.",
)
ENOUGH_NOW = 10
GOOD_NOW = Recorded(
    name=f"model:llm_slo_good:ratio{windows.NOW.name}",
    labels=(MODEL, SLO),
    help=f"Share of good requests over {windows.NOW.name}, 0 to 1, where at least {ENOUGH_NOW} requests tell.",
)


def burn(window: Window) -> Recorded:
    """Name the recorded burn rate over a window."""
    return Recorded(
        name=f"model:llm_slo_burn:rate{window.name}",
        labels=(MODEL, SLO),
        help=f"How many times faster than it lasts the error budget was spent, over {window.name}.",
    )


def spend(window: Window) -> Recorded:
    """Name the recorded spend rate over a window."""
    return Recorded(
        name=f"model:llm_slo_spend:rate{window.name}",
        labels=(MODEL, SLO),
        help=f"How many times faster than it lasts, with usual traffic, budget was spent over {window.name}.",
    )


def usual(indicator: Indicator, window: Window) -> Recorded:
    """Name the recorded mean rate of requests over the part of the SLO window that was seen."""
    return Recorded(
        name=f"model:llm_{indicator.slo}_total:avg{window.name}",
        labels=(MODEL,),
        help=f"{indicator.title}: requests per second that the objective counts, on average over {window.name}.",
    )


def groups(slos: Slos) -> tuple[RuleGroup, ...]:
    """Build the rules for burn rates over every window, and for the budget left over the last one."""
    spans = windows.over(slos.window)
    return (
        RuleGroup(
            name="burn-usual", interval=spans[-1].interval, rules=tuple(_usual(each, spans[-1]) for each in INDICATORS)
        ),
        *(
            RuleGroup(name=f"burn-{window.name}", interval=_burn_interval(window), rules=_rates(slos, window))
            for window in spans
        ),
        RuleGroup(name="budget", interval=spans[-1].interval, rules=(_budget_left(spans[-1]), _exhaustion(slos))),
        RuleGroup(name="now", interval=windows.AT_ONCE, rules=tuple(map(_good_now, COUNTED))),
    )


def _burn_interval(window: Window) -> timedelta:
    """Follow short windows, which pages wait for, at once."""
    return windows.AT_ONCE if window in windows.SHORT else window.interval


def _rates(slos: Slos, window: Window) -> tuple[RecordingRule, ...]:
    """Record the burn rate, and over long windows the spend rate."""
    burns = tuple(
        RecordingRule(recorded=burn(window), expr=_burn(indicator, slos, window), constant={SLO: indicator.slo})
        for indicator in INDICATORS
    )
    if window.span not in SPENDING:
        return burns
    spends = (
        RecordingRule(recorded=spend(window), expr=_spend(indicator, slos, window), constant={SLO: indicator.slo})
        for indicator in INDICATORS
    )
    return (*burns, *spends)


def _spend(indicator: Indicator, slos: Slos, window: Window) -> Expr:
    first, *others = (
        _per_usual(indicator, window, windows.over(slos.window)[-1], part.matchers) / (Decimal(1) - part.value)
        for part in partition(slos, indicator.objective)
    )
    return first.union(*others)


def _per_usual(indicator: Indicator, window: Window, budget: Window, matchers: tuple[Matcher, ...]) -> Expr:
    """Divide bad requests by usual ones; where none are usual there is no spend rate, rather than infinity."""
    total, good = (of(window).select(*matchers) for of in (indicator.total, indicator.good))
    return (total - good) / usual(indicator, budget).select(*matchers).compare(">", 0)


def _usual(indicator: Indicator, window: Window) -> RecordingRule:
    tiles = indicator.total(windows.TILE).select()
    return RecordingRule(
        recorded=usual(indicator, window), expr=tiles.over_time("avg", window.span, step=windows.TILE.span)
    )


def _burn(indicator: Indicator, slos: Slos, window: Window) -> Expr:
    """Divide the share of bad requests by the budget; without requests there is no burn rate, rather than NaN."""
    first, *others = (
        _bad_share(indicator, window, part.matchers) / (Decimal(1) - part.value)
        for part in partition(slos, indicator.objective)
    )
    return first.union(*others)


def _bad_share(indicator: Indicator, window: Window, matchers: tuple[Matcher, ...]) -> Expr:
    good = indicator.good(window).select(*matchers)
    total = indicator.total(window).select(*matchers)
    return 1 - good / total.compare(">", 0)


def _budget_left(window: Window) -> RecordingRule:
    return RecordingRule(recorded=BUDGET_LEFT, expr=1 - burn(window).select())


def _exhaustion(slos: Slos) -> RecordingRule:
    burning = burn(_LAST_HOUR).select().compare(">", 0)
    left = BUDGET_LEFT.select().call("clamp_min", 0)
    return RecordingRule(recorded=EXHAUSTION, expr=left * Seconds(span=slos.window) / burning)


def _good_now(indicator: Indicator) -> RecordingRule:
    good, total = (of(windows.NOW).select() for of in (indicator.good, indicator.total))
    enough = (total * Seconds(span=windows.NOW.span)).compare(">=", ENOUGH_NOW)
    return RecordingRule(recorded=GOOD_NOW, expr=(good / total).intersect(enough), constant={SLO: indicator.slo})
