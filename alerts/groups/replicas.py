"""Replicas: nobody serves a model, or one replica is gone.

How soon LLMModelDown is on the phone, at worst: the last good sample leaves the window 30 s after the fault, the next
evaluation comes within 5 s, the alert stays pending for 10 s, Alertmanager waits 5 s: 50 s. One failed scrape in four,
or a restart of Prometheus, does not page: no sample of the window may be ready, in three evaluations.
"""

from datetime import timedelta
from decimal import Decimal

from alerts.annotations import MODEL_NAME, OF_MODEL, REPLICA_NAME, THIS_MODEL, THIS_REPLICA, counts, name
from alerts.expected import known_models, not_off
from alerts.model import Alert, AlertGroup, AlertRule, Louder, Severity
from exporter.catalogue import MODEL, REPLICA, REPLICA_STATE, STATE
from exporter.fleet import Fleet
from prometheus.promql import Expr, Matcher
from prometheus.recording import REPLICAS_BY_STATE
from prometheus.series import select

__all__ = ["GROUP"]

_FAILED = ("unreachable", "broken", "denied", "disabled", "stuck")
_SEEN = timedelta(seconds=30)
"""Three scrapes."""
_WAKING = timedelta(minutes=2)
"""How long a model that slept may take to serve again."""
_RECENTLY = timedelta(minutes=5)
_MOSTLY = Decimal("0.5")


def _model_down(fleet: Fleet) -> Expr:
    """Find models none of whose replicas was ready lately, unless all of them sleep on purpose."""
    known = known_models(fleet)
    ready = select(REPLICA_STATE, Matcher.equal(STATE, "ready"), *known).over_time("max", _SEEN)
    asleep = select(REPLICA_STATE, Matcher.equal(STATE, "sleeping"), *known).over_time("max", _WAKING)
    return ready.aggregate("max", MODEL).compare("==", 0).without(asleep.aggregate("min", MODEL).compare("==", 1))


def _replica_down(fleet: Fleet) -> Expr:
    """Find replicas that failed in most of their scrapes lately; a share outlives both a lost scrape and a lucky one.

    A replica whose engine or address becomes known anew goes on as other series, so scrapes are added up before they
    are divided. What is not scraped any more, under this model or at all, is nobody's trouble, and neither is a replica
    of a model that may be off.
    """
    own, may_not = (MODEL, REPLICA), not_off(fleet)
    any_state = select(REPLICA_STATE, Matcher.equal(STATE, "ready"), *may_not)
    failed = select(REPLICA_STATE, Matcher.among(STATE, _FAILED), *may_not).over_time("sum", _RECENTLY)
    scraped = any_state.over_time("count", _RECENTLY).aggregate("sum", *own)
    still_there = any_state.over_time("count", _SEEN).aggregate("sum", *own)
    return (failed.aggregate("sum", *own) / scraped).compare(">", _MOSTLY).intersect(still_there)


_STATES_OF_MODEL = counts(REPLICAS_BY_STATE.select(THIS_MODEL).compare(">", 0), STATE)
_STATE_OF_REPLICA = name(select(REPLICA_STATE, THIS_REPLICA).compare("==", 1), STATE, of=REPLICA)

GROUP = AlertGroup(
    name="replicas",
    interval=timedelta(seconds=5),
    alerts=(
        Alert(
            name="LLMModelDown",
            meaning="A model has no replica that is ready: its users get nothing.",
            rules=(AlertRule(severity=Severity.PAGE, expression=_model_down, delay=timedelta(seconds=10)),),
            summary=f"{MODEL_NAME}: no replica is ready",
            description=lambda _: f"Replicas of {MODEL_NAME} by state: {_STATES_OF_MODEL}. At least 1 has to be ready.",
            board="fleet",
            drill="model-down",
        ),
        Alert(
            name="LLMReplicaDown",
            meaning="A replica has failed most of the time for minutes; the rest of its pool carries its load.",
            rules=(AlertRule(severity=Severity.TICKET, expression=_replica_down, delay=timedelta(minutes=5)),),
            summary=f"{OF_MODEL}replica {REPLICA_NAME} is down",
            description=lambda _: (
                f"{REPLICA_NAME} failed in {{{{ $value | humanizePercentage }}}} of the scrapes of the last 5m"
                f" (limit 50%); now: {_STATE_OF_REPLICA}."
            ),
            board="fleet",
            quiet_while=(Louder(alertname="LLMModelDown"),),
        ),
    ),
)
