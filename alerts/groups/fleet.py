"""Fleet: replicas are not watched any more, and nobody said that they should not be.

A mount that is lost or an include that matches nothing looks like an edit: its replicas leave without a failure, and
whatever is wrong with them from then on is nobody's alert. Who means it drains them first.
"""

from datetime import timedelta
from decimal import Decimal

from alerts.annotations import MODEL_NAME
from alerts.expected import REMEMBERED, not_off, unwatched
from alerts.model import Alert, AlertGroup, AlertRule, Louder, Severity
from exporter.catalogue import FLEET_REPLICAS, MODEL, STATE
from exporter.fleet import Fleet
from prometheus.promql import Expr, Matcher
from prometheus.recording import REPLICAS, REPLICAS_BY_STATE
from prometheus.series import select
from prometheus.stack import JOB, UP

__all__ = ["GROUP"]

_MINUTE = timedelta(minutes=1)
_HALF = Decimal("0.5")


def _shrunk(fleet: Fleet) -> Expr:
    """Find models without any replica left, else a fleet that has lost more than half of its replicas, or all."""
    models = unwatched(fleet)
    others = _halved(fleet).union(_empty()).without(models.aggregate("count"))
    return models.union(others)


def _halved(fleet: Fleet) -> Expr:
    """Count the replicas that are left, where more than half are gone beside those that were drained."""
    may_not = not_off(fleet)
    left = REPLICAS.select(*may_not).aggregate("sum")
    before = left.over_time("max", REMEMBERED, step=_MINUTE)
    draining = REPLICAS_BY_STATE.select(Matcher.equal(STATE, "draining"), *may_not).aggregate("sum")
    return left.compare("<", before * _HALF - draining.over_time("max", REMEMBERED, step=_MINUTE))


def _empty() -> Expr:
    """Answer 0 where exporters answer and none has a replica to watch."""
    answers = select(UP, Matcher.equal(JOB, "exporter")).over_time("max", _MINUTE).aggregate("max").compare("==", 1)
    return (select(FLEET_REPLICAS).absent(_MINUTE) - 1).intersect(answers)


_MODEL_OR_MOST = f"{{{{ with $labels.{MODEL.name} }}}}{{{{ . }}}}: its{{{{ else }}}}most{{{{ end }}}}"
_HOW_MANY = (
    f"{{{{ if $labels.{MODEL.name} }}}}{{{{ $value }}}} replicas of {MODEL_NAME} were ready within a day, not drained,"
    " and have left the fleet.{{ else }}{{ $value }} replicas are in the fleet: less than half of those of the last"
    " day, or none at all.{{ end }}"
)

GROUP = AlertGroup(
    name="fleet",
    interval=_MINUTE,
    alerts=(
        Alert(
            name="LLMFleetShrunk",
            meaning="A model, or most of the fleet, is not watched any more, and was not drained before.",
            rules=(AlertRule(severity=Severity.TICKET, expression=_shrunk, delay=timedelta(minutes=10)),),
            summary=f"{_MODEL_OR_MOST} replicas are not watched any more",
            description=lambda _: (
                f"{_HOW_MANY} What is not watched pages nobody: was it meant, or did a file get lost?"
            ),
            board="fleet",
            quiet_while=(Louder(alertname="LLMMonitoringBlind", labels=()),),
        ),
    ),
)
