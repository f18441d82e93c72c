"""Replicas: nobody serves a model, or one replica is gone.

How soon LLMModelDown is on the phone, at worst: the last good sample leaves the window 30 s after the fault, the next
evaluation comes within 5 s, the alert stays pending for 10 s, Alertmanager waits 5 s: 50 s. One failed scrape in four,
or a restart of Prometheus, does not page: no sample of the window may be ready, in three evaluations. What comes and
goes takes longer: until it was ready for less than half of five minutes.

A model that starts together with its monitoring is not missed before it could be ready. A drained replica is not ready:
whoever drains the last one leaves users with nothing, which pages, and the page says why.
"""

from datetime import timedelta
from decimal import Decimal

from alerts.annotations import (
    MODEL_NAME,
    OF_MODEL,
    REPLICA_AND_ADDRESS,
    REPLICA_NAME,
    THIS_MODEL,
    THIS_REPLICA,
    counts,
    name,
    number,
)
from alerts.expected import known_models, not_off
from alerts.model import Alert, AlertGroup, AlertRule, Louder, Severity
from exporter.catalogue import MODEL, REPLICA, REPLICA_STATE, STATE
from exporter.fleet import Fleet
from prometheus.partition import partition
from prometheus.promql import Expr, Matcher, Seconds
from prometheus.recording import (
    READY_CHANGES,
    REPLICAS,
    REPLICAS_ASLEEP,
    REPLICAS_BY_STATE,
    REPLICAS_IN_ORDER,
    REPLICAS_READY,
)
from prometheus.series import select
from prometheus.windows import INTERVAL

__all__ = ["GROUP"]

_FAILED = ("unreachable", "broken", "denied", "disabled", "stuck")
_DOWN = "LLMModelDown"
_SEEN = timedelta(seconds=30)
"""Three scrapes."""
_VIEW = timedelta(seconds=40)
_FEWEST_VIEWS = 3
"""Of four scrapes, before which a look says nothing."""
_TWICE = 4
"""Changes of a replica that goes away and comes back twice."""
_WAKING = timedelta(minutes=2)
"""How long a model that slept may take to serve again, and how long one that served is missed for certain."""
_RECENTLY = timedelta(minutes=5)
_MOSTLY = Decimal("0.5")


def _model_down(fleet: Fleet) -> Expr:
    """Find models none of whose replicas was ready lately or stays ready, unless all of them sleep on purpose.

    The value is the share of time in which one was ready.
    """
    known = known_models(fleet)
    ready = select(REPLICA_STATE, Matcher.equal(STATE, "ready"), *known).over_time("max", _SEEN)
    asleep = REPLICAS_ASLEEP.select(*known).over_time("max", _WAKING).compare(">=", REPLICAS.select())
    down = ready.aggregate("max", MODEL).compare("==", 0).without(asleep)
    seen = REPLICAS.select().over_time("count", _VIEW).compare(">=", _FEWEST_VIEWS)
    return down.intersect(seen, _may_be_missed(fleet)).union(_never_stays(known))


def _may_be_missed(fleet: Fleet) -> Expr:
    """Find models that have just been ready, or have been watched for as long as a cold start may take.

    Nobody knows when one began that was not there before, as after a gap; samples tell how long it has been watched,
    scrapes that failed not counted. Who was missed before is missed until it is ready.
    """
    served = REPLICAS_READY.select().over_time("max", _WAKING).compare(">", 0)
    watched = (
        (REPLICAS.select(*part.matchers).over_time("count", part.value * 3 / 2) * Seconds(span=INTERVAL)).compare(
            ">=", Seconds(span=part.value)
        )
        for part in partition(fleet.thresholds, lambda of: of.cold_start)
    )
    pages = f'ALERTS{{alertname="{_DOWN}",alertstate="firing"}}'
    missed = Expr(parts=(pages,), labels=frozenset({MODEL.name})).aggregate("max", MODEL)
    return served.union(*watched, missed)


def _never_stays(known: tuple[Matcher, ...]) -> Expr:
    """Find models that come and go, ready for less than half of the time: an outage comes once and goes once."""
    share = (
        REPLICAS_IN_ORDER.select(*known)
        .call("clamp_max", 1)
        .over_time("avg", _RECENTLY, step=INTERVAL)
        .compare("<", _MOSTLY)
    )
    return share.intersect(READY_CHANGES.select().compare(">=", _TWICE))


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

_DRAINING = REPLICAS_BY_STATE.select(Matcher.equal(STATE, "draining"), THIS_MODEL).compare(">", 0)
_DRAINED = number(_DRAINING, before=" (", after=" drained on purpose)")
_HOW_TO_END_DRAINS = number(
    _DRAINING,
    before=" Somebody drains ",
    after=" of them: `python -m exporter undrain NAME` takes one that still runs back into service.",
)

GROUP = AlertGroup(
    name="replicas",
    interval=timedelta(seconds=5),
    alerts=(
        Alert(
            name=_DOWN,
            meaning="A model has no replica that is ready, or none that stays ready: its users get nothing.",
            rules=(AlertRule(severity=Severity.PAGE, expression=_model_down, delay=timedelta(seconds=10)),),
            summary=f"{MODEL_NAME}: no replica {{{{ if $value }}}}stays{{{{ else }}}}is{{{{ end }}}} ready{_DRAINED}",
            description=lambda _: (
                f"Replicas of {MODEL_NAME} by state: {_STATES_OF_MODEL}. At least 1 has to be ready."
                "{{ if $value }} One was in {{ $value | humanizePercentage }} of the last 5m (limit 50%).{{ end }}"
                f"{_HOW_TO_END_DRAINS}"
            ),
            board="fleet",
            drill="model-down",
        ),
        Alert(
            name="LLMReplicaDown",
            meaning="A replica has failed most of the time for minutes; the rest of its pool carries its load.",
            rules=(
                AlertRule(
                    severity=Severity.TICKET,
                    expression=_replica_down,
                    delay=timedelta(minutes=5),
                    every=timedelta(minutes=1),
                ),
            ),
            summary=f"{OF_MODEL}replica {REPLICA_NAME} is down",
            description=lambda _: (
                f"{REPLICA_AND_ADDRESS} failed in {{{{ $value | humanizePercentage }}}} of the scrapes of the last 5m"
                f" (limit 50%); now: {_STATE_OF_REPLICA}."
            ),
            board="fleet",
            quiet_while=(Louder(alertname=_DOWN),),
        ),
    ),
)
