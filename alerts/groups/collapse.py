"""Collapse: what users feel now, not what the month can afford.

Burn rates need long windows to be sure, and with a loose objective that takes too long: at 95 % a complete failure has
to last 43 minutes of an hour before the textbook's fast burn speaks. This alert asks whether fewer than half as many
requests as promised are good, which no objective allows for long.

With a strict objective it is the burn rate that speaks first, within seconds. Then this alert has nothing to add about
the same objective, and does not start. In the other order it lasts, and the burn rate keeps quiet instead: also for
half an hour after, in which its longer windows still remember what is over.

How soon it is on the phone, at worst, when every request turns bad: the share crosses its limit after 70 s of the two
minutes it looks back over (after 90 s where only 50 % are promised), the alert stays pending for 40 s, rules wait for
each other up to 30 s, Alertmanager waits 5 s: 145 s (165 s).
"""

from datetime import timedelta
from decimal import Decimal
from functools import partial

from alerts.annotations import MODEL_NAME, choose
from alerts.model import Alert, AlertGroup, AlertRule, Louder, Severity
from alerts.objectives import ENOUGH_NOW, GOOD_NOW
from exporter.catalogue import MODEL, SLO
from exporter.fleet import Fleet
from exporter.objectives import Objectives
from exporter.thresholds import Thresholds
from prometheus.indicators import COUNTED, Indicator
from prometheus.partition import Both, partition
from prometheus.promql import Expr, Matcher, number_text
from prometheus.windows import AT_ONCE, NOW, duration_text

__all__ = ["GROUP"]

_NAME = "LLMGoodputCollapse"
_REMEMBERED = timedelta(minutes=30)
"""The longest short window of a burn rate that pages."""
_PERCENT = Decimal("0.01")


def _least(indicator: Indicator, setting: tuple[Objectives, Thresholds]) -> Decimal:
    """Return the share of good requests below which a model has collapsed, in whole percents."""
    objectives, thresholds = setting
    return (indicator.objective(objectives) * thresholds.collapse).quantize(_PERCENT).normalize()


def _collapsed(fleet: Fleet) -> Expr:
    first, *others = (
        GOOD_NOW.select(Matcher.equal(SLO, indicator.slo), *part.matchers).compare("<", part.value)
        for indicator in COUNTED
        for part in partition(Both(fleet.slos, fleet.thresholds), partial(_least, indicator))
    )
    return first.union(*others).without(_paged_already(), on=(MODEL, SLO))


def _paged_already() -> Expr:
    """Find the objectives of models whose budget pages, unless this alert was there before."""
    budget = _firing(f'alertname=~"LLM.+BudgetBurn",severity="{Severity.PAGE.value}"')
    return budget.without(_firing(f'alertname="{_NAME}",severity="{Severity.PAGE.value}"'), on=(MODEL, SLO))


def _told_lately(_: Fleet) -> Expr:
    """Find what this alert has paged about lately."""
    pages = _firing(f'alertname="{_NAME}",severity="{Severity.PAGE.value}"')
    return pages.over_time("max", _REMEMBERED).aggregate("max", MODEL, SLO)


def _firing(matchers: str) -> Expr:
    """Select from Prometheus' own record of alerts."""
    return Expr(parts=(f'ALERTS{{alertstate="firing",{matchers}}}',), labels=frozenset({MODEL.name, SLO.name}))


def _description(fleet: Fleet) -> str:
    return (
        f"Over the last {NOW.name} only {{{{ $value | humanizePercentage }}}} of the requests to {MODEL_NAME}"
        f" met the objective {{{{ $labels.{SLO.name} }}}}; promised: {_promises(fleet)}."
        f" At least {ENOUGH_NOW} requests tell."
    )


def _promises(fleet: Fleet) -> str:
    """Print what was promised for the objective of the alert."""
    text = ""
    for indicator in reversed(COUNTED):
        share = choose(fleet.slos, indicator.objective, lambda objective: f"{number_text(objective * 100)}%")
        start = f'{{{{ if eq $labels.{SLO.name} "{indicator.slo}" }}}}{share}'
        text = f"{start}{{{{ else }}}}{text}{{{{ end }}}}" if text else share
    return text


GROUP = AlertGroup(
    name="collapse",
    interval=AT_ONCE,
    alerts=(
        Alert(
            name=_NAME,
            meaning="For minutes, fewer than half as many requests of a model as promised have met an objective.",
            rules=(
                AlertRule(
                    severity=Severity.PAGE,
                    expression=_collapsed,
                    delay=timedelta(seconds=40),
                    keep=timedelta(minutes=5),
                ),
                AlertRule(
                    severity=Severity.NOTE,
                    expression=_told_lately,
                    description=lambda _: (
                        f"Within {duration_text(_REMEMBERED)} this alert has paged about {MODEL_NAME}. Nobody is told"
                        " of this note; budget alerts about the same objective keep quiet."
                    ),
                ),
            ),
            summary=f"{MODEL_NAME}: most requests miss the objective {{{{ $labels.{SLO.name} }}}}",
            description=_description,
            board="fleet",
            drill="goodput-collapse",
            quiet_while=(Louder(alertname="LLMModelDown"),),
        ),
    ),
)
