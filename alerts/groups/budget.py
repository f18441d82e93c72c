"""Budget: the error budget of a model is in danger. One alert per indicator; fast burns page, slow ones are tickets."""

from collections.abc import Callable
from decimal import Decimal
from functools import partial

from alerts.annotations import MODEL_NAME, THIS_MODEL, choose, percentage
from alerts.burnrate import in_danger
from alerts.model import Alert, AlertGroup, AlertRule, Severity
from alerts.objectives import BUDGET_LEFT
from exporter.catalogue import SLO
from exporter.fleet import Fleet
from exporter.objectives import LatencyObjective, Objectives
from prometheus.indicators import AVAILABILITY, ITL_INDICATOR, TTFT_INDICATOR, Indicator
from prometheus.promql import Matcher, number_text
from prometheus.windows import TILE, duration_text

__all__ = ["GROUP"]


def _percent(share: Decimal) -> str:
    return f"{number_text(share * 100)}%"


def _description(indicator: Indicator, promise: Callable[[Objectives], str], fleet: Fleet) -> str:
    """Say how many requests meet the objective now, what was promised, and what is left of the budget."""
    good, total = (of(TILE).select(THIS_MODEL) for of in (indicator.good, indicator.total))
    left = BUDGET_LEFT.select(Matcher.equal(SLO, indicator.slo), THIS_MODEL)
    now = percentage(good / total.compare(">", 0), otherwise="no requests")
    budget = percentage(left.call("clamp_min", 0), otherwise="an unknown part")
    return (
        f"Good in the last {TILE.name}: {now}; objective: {choose(fleet.slos, promise, str)}."
        ' The error budget burns {{ $value | printf "%.1f" }} times faster than it lasts;'
        f" {budget} of the {duration_text(fleet.slos.window)} budget is left."
    )


def _latency(objective: LatencyObjective) -> str:
    return f"{_percent(objective.objective)} within {duration_text(objective.threshold)}"


def _budget_alert(
    name: str, indicator: Indicator, trouble: str, meaning: str, promise: Callable[[Objectives], str]
) -> Alert:
    return Alert(
        name=name,
        meaning=meaning,
        rules=tuple(
            AlertRule(severity=severity, expression=partial(in_danger, indicator, severity))
            for severity in (Severity.PAGE, Severity.TICKET)
        ),
        summary=f"{MODEL_NAME}: {trouble}",
        description=partial(_description, indicator, promise),
        board="fleet",
        indicator=indicator,
    )


GROUP = AlertGroup(
    name="budget",
    alerts=(
        _budget_alert(
            "LLMTimeToFirstTokenBudgetBurn",
            TTFT_INDICATOR,
            "first tokens come late",
            "So many requests wait too long for their first token that the error budget is in danger.",
            lambda objectives: _latency(objectives.ttft),
        ),
        _budget_alert(
            "LLMInterTokenLatencyBudgetBurn",
            ITL_INDICATOR,
            "tokens come slowly",
            "So many answers stream too slowly that the error budget is in danger.",
            lambda objectives: _latency(objectives.itl),
        ),
        _budget_alert(
            "LLMAvailabilityBudgetBurn",
            AVAILABILITY,
            "requests fail or are turned away",
            "So many requests fail or are turned away that the error budget is in danger.",
            lambda objectives: _percent(objectives.availability.objective),
        ),
    ),
)
