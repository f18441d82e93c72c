"""Drain: a replica taken out on purpose keeps its own alerts quiet, and is told if it does not empty in time."""

from datetime import timedelta

from alerts.annotations import OF_MODEL, REPLICA_AND_ADDRESS, REPLICA_NAME
from alerts.model import Alert, AlertGroup, AlertRule, Severity
from exporter.catalogue import DRAIN_EXPIRY, MODEL, REPLICA, REPLICA_DRAINING, REQUESTS_RUNNING
from exporter.fleet import Fleet
from prometheus.promql import Expr
from prometheus.series import select

__all__ = ["GROUP"]

_OWN = (MODEL, REPLICA)
_SEEN = timedelta(minutes=1)


def _draining(_: Fleet) -> Expr:
    return select(REPLICA_DRAINING).over_time("max", _SEEN).aggregate("max", *_OWN).compare("==", 1)


def _stuck(_: Fleet) -> Expr:
    """Find drains that time has ended, not somebody, while requests still ran.

    A marker that somebody removes has its end in the future, one that has just run out in the past.
    """
    end = select(DRAIN_EXPIRY).over_time("last", _SEEN).aggregate("max", *_OWN)
    running = select(REQUESTS_RUNNING).over_time("min", _SEEN).aggregate("sum", *_OWN).compare(">", 0)
    return running.intersect(end.age().compare(">", 0))


GROUP = AlertGroup(
    name="drain",
    interval=timedelta(seconds=20),
    alerts=(
        Alert(
            name="LLMReplicaDraining",
            meaning="A replica carries a drain marker. Nobody is told, and its other alerts keep quiet.",
            rules=(AlertRule(severity=Severity.NOTE, expression=_draining),),
            summary=f"{OF_MODEL}replica {REPLICA_NAME} is being drained",
            description=lambda _: f"{REPLICA_NAME} is taken out on purpose; other alerts about it are inhibited.",
            board="fleet",
        ),
        Alert(
            name="LLMDrainStuck",
            meaning="The time of a drain is up and requests still run in the replica.",
            rules=(AlertRule(severity=Severity.TICKET, expression=_stuck, keep=timedelta(minutes=15)),),
            summary=f"{OF_MODEL}the drain of replica {REPLICA_NAME} did not end",
            description=lambda _: (
                f"The drain marker of {REPLICA_AND_ADDRESS} has run out, and {{{{ $value }}}} requests still ran."
                " Its other alerts speak again. If it is stopped now, these requests are cut."
            ),
            board="fleet",
        ),
    ),
)
