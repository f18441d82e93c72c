"""Budget: the error budget of a model is in danger. One alert per indicator; fast burns page, slow ones are tickets."""

from datetime import timedelta
from functools import partial

from alerts.annotations import MODEL_NAME, THIS_MODEL, choose, duration, percentage
from alerts.burnrate import in_danger
from alerts.model import Alert, AlertGroup, AlertRule, Louder, Severity
from alerts.objectives import BUDGET_LEFT, EXHAUSTION
from exporter.catalogue import MODEL, SLO
from exporter.fleet import Fleet
from exporter.objectives import LatencyObjective, Objectives, RatioObjective, Slos
from prometheus.indicators import AVAILABILITY, GOODPUT, ITL_INDICATOR, TTFT_INDICATOR, Indicator
from prometheus.promql import Matcher, number_text
from prometheus.windows import AT_ONCE, TILE, duration_text

__all__ = ["GROUP"]


_KEEP = timedelta(minutes=5)
"""Where requests are rare, minutes without a bad one are not the end of it."""


def _promise(indicator: Indicator, objectives: Objectives) -> str:
    objective: LatencyObjective | RatioObjective = getattr(objectives, indicator.slo)
    share = f"{number_text(objective.objective * 100)}%"
    if isinstance(objective, LatencyObjective):
        return f"{share} within {duration_text(objective.threshold)}"
    return share


def _decimals(indicator: Indicator, slos: Slos) -> int:
    """Return one decimal more than the promises have: 99.86 % beside a promise of 99.9 % must not read 100 %."""
    promised = (indicator.objective(objectives) for objectives in (slos.default, *slos.models.values()))
    return 1 + max(len(number_text(share * 100).partition(".")[2]) for share in promised)


def _description(indicator: Indicator, fleet: Fleet) -> str:
    """Say how many requests meet the objective now, what was promised, and what is left of the budget."""
    good, total = (of(TILE).select(THIS_MODEL) for of in (indicator.good, indicator.total))
    now = percentage(good / total.compare(">", 0), otherwise="no requests", decimals=_decimals(indicator, fleet.slos))
    left, time = (of.select(Matcher.equal(SLO, indicator.slo), THIS_MODEL) for of in (BUDGET_LEFT, EXHAUSTION))
    budget = percentage(left.call("clamp_min", 0), otherwise="an unknown part")
    pace = duration(time, before=", gone in ", after=" at the pace of the last hour")
    return (
        f"Good in the last {TILE.name}: {now}; objective: {choose(fleet.slos, partial(_promise, indicator), str)}."
        ' The error budget burns {{ $value | printf "%.1f" }} times faster than it lasts;'
        f" {budget} of the {duration_text(fleet.slos.window)} budget is left{pace}."
    )


def _quiet_while(indicator: Indicator) -> tuple[Louder, ...]:
    """Name what says the same and more: the collapse, or which of the objectives it is."""
    by_model = ["LLMModelDown", *(_NAMES.values() if indicator.derived else ())]
    collapse = Louder(alertname="LLMGoodputCollapse", labels=(MODEL,) if indicator.derived else (MODEL, SLO))
    return (*(Louder(alertname=name) for name in by_model), collapse)


def _budget_alert(name: str, indicator: Indicator, trouble: str, meaning: str, drill: str) -> Alert:
    return Alert(
        name=name,
        meaning=meaning,
        rules=tuple(
            AlertRule(severity=severity, expression=partial(in_danger, indicator, severity), keep=keep, every=every)
            for severity, keep, every in ((Severity.PAGE, _KEEP, None), (Severity.TICKET, timedelta(), TILE.interval))
        ),
        summary=f"{MODEL_NAME}: {trouble}",
        description=partial(_description, indicator),
        board="fleet",
        indicator=indicator,
        drill=drill,
        quiet_while=_quiet_while(indicator),
    )


_NAMES = {
    TTFT_INDICATOR.slo: "LLMTimeToFirstTokenBudgetBurn",
    ITL_INDICATOR.slo: "LLMInterTokenLatencyBudgetBurn",
    AVAILABILITY.slo: "LLMAvailabilityBudgetBurn",
}

GROUP = AlertGroup(
    name="budget",
    interval=AT_ONCE,
    alerts=(
        _budget_alert(
            _NAMES[TTFT_INDICATOR.slo],
            TTFT_INDICATOR,
            trouble="first tokens come late",
            meaning="So many requests wait too long for their first token that the error budget is in danger.",
            drill="slow-first-token",
        ),
        _budget_alert(
            _NAMES[ITL_INDICATOR.slo],
            ITL_INDICATOR,
            trouble="tokens come slowly",
            meaning="So many answers stream too slowly that the error budget is in danger.",
            drill="slow-tokens",
        ),
        _budget_alert(
            _NAMES[AVAILABILITY.slo],
            AVAILABILITY,
            trouble="requests fail or are turned away",
            meaning="So many requests fail or are turned away that the error budget is in danger.",
            drill="failing-requests",
        ),
        _budget_alert(
            "LLMGoodputBudgetBurn",
            GOODPUT,
            trouble="too few requests meet every objective",
            meaning="So few requests meet every objective at once that the error budget is in danger.",
            drill="goodput-burn",
        ),
    ),
)
