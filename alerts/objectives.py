"""Objectives: how fast each error budget burns, and how much of it is left.

In: indicators and their objectives. Out: `BUDGET_LEFT`, `burn(window)`, and the rules that record them.

    burn rate = share of bad requests / (1 - objective)

At burn rate 1 the budget lasts exactly the SLO window. Objectives stay decimals, so the divisor is exact in the rule.
"""

from decimal import Decimal

from exporter.catalogue import MODEL, SLO
from exporter.objectives import Slos
from prometheus import windows
from prometheus.indicators import INDICATORS, Indicator
from prometheus.partition import partition
from prometheus.promql import Expr, Matcher
from prometheus.series import Recorded, RecordingRule, RuleGroup
from prometheus.windows import Window

__all__ = ["BUDGET_LEFT", "burn", "groups"]

BUDGET_LEFT = Recorded(
    name="model:llm_slo_budget_left:ratio",
    labels=(MODEL, SLO),
    help="Share of the error budget of the SLO window that is left, 1 (untouched) to below 0 (overspent).",
)


def burn(window: Window) -> Recorded:
    """Name the recorded burn rate over a window."""
    return Recorded(
        name=f"model:llm_slo_burn:rate{window.name}",
        labels=(MODEL, SLO),
        help=f"How many times faster than it lasts the error budget was spent, over {window.name}.",
    )


def groups(slos: Slos) -> tuple[RuleGroup, ...]:
    """Build the rules for burn rates over every window, and for the budget left over the last one."""
    spans = windows.over(slos.window)
    return (
        *(
            RuleGroup(name=f"burn-{window.name}", interval=window.interval, rules=_burns(slos, window))
            for window in spans
        ),
        RuleGroup(name="budget", interval=spans[-1].interval, rules=(_budget_left(spans[-1]),)),
    )


def _burns(slos: Slos, window: Window) -> tuple[RecordingRule, ...]:
    return tuple(
        RecordingRule(recorded=burn(window), expr=_burn(indicator, slos, window), constant={SLO: indicator.slo})
        for indicator in INDICATORS
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
