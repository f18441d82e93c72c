"""GPU: a card is lost, ill, slow, full or idle; joined to the replica and the model that suffer.

Trouble is found per card, whatever instance of it a replica uses, and told once per replica. A card that serves no
replica that we know is told without one. The expressions read recorded claims; without claims and cards they are empty,
so a fleet without GPUs hears nothing.
"""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

from alerts.annotations import MODEL_NAME, REPLICA_NAME, name
from alerts.model import Alert, AlertGroup, AlertRule, Severity
from exporter.catalogue import (
    ECC_KIND,
    GPU,
    GPU_ECC_ERRORS,
    GPU_FAILURE,
    GPU_MEMORY_FREE,
    GPU_MEMORY_TOTAL,
    GPU_REMAPPED_ROWS,
    GPU_THROTTLED,
    GPU_TROUBLE,
    GPU_UP,
    GPU_UTILIZATION,
    GPU_XID_TIME,
    MODEL,
    PARTITION,
    REPLICA,
    REQUESTS_WAITING,
    ROW_KIND,
    THROTTLE,
    XID,
    Label,
)
from exporter.fleet import Fleet
from prometheus.hardware import CLAIMS, ON_CARD
from prometheus.promql import Expr, Matcher, Seconds
from prometheus.series import select
from prometheus.windows import SHORT, TILE

__all__ = ["GROUP"]

_HOUR = SHORT[-1]
_NEWS = timedelta(minutes=10)
"""How long an Xid stays news."""
_HARMLESS_XIDS = ("45",)
"""45 follows whenever a process is killed while it uses the card."""
_SLOWED_BY = ("software_thermal", "hardware_thermal", "hardware_slowdown", "power_brake")
"""At its power cap a busy card is where it should be."""
_MOSTLY = Decimal("0.5")
_NEAR_FULL = Decimal("0.02")
_IDLE = Decimal("0.05")

_THIS_CARD = Matcher.equal(GPU, "%[1]q")
_CARD_NAME = f"{{{{ $labels.{GPU.name} }}}}"
_WHOSE = f"{{{{ if $labels.{MODEL.name} }}}}{MODEL_NAME}: {{{{ end }}}}"
_AT_REPLICA = f"{{{{ if $labels.{REPLICA.name} }}}} of {REPLICA_NAME}{{{{ end }}}}"


def _told(trouble: Expr, *on: Label) -> Expr:
    """Tell trouble of a card to each replica that uses it, or to nobody in particular."""
    claims = CLAIMS.select()
    return trouble.per(claims, on).union(trouble.without(claims, on=on))


def _lost(_: Fleet) -> Expr:
    """Find cards that were there or that fleet.yml names, and that no source can reach."""
    claims = CLAIMS.select()
    up = select(GPU_UP).aggregate("max", GPU)
    unclaimed = up.compare("==", 0).without(claims, on=(GPU,))
    return claims.without(up.compare("==", 1), on=(GPU,)).union(unclaimed)


def _xid(_: Fleet) -> Expr:
    return _told(_recent_xids().aggregate("min", GPU), GPU)


def _recent_xids(*matchers: Matcher) -> Expr:
    at = select(GPU_XID_TIME, Matcher.outside(XID, _HARMLESS_XIDS), *matchers)
    return at.age().compare("<", Seconds(span=_NEWS))


def _ecc(_: Fleet) -> Expr:
    """Find uncorrectable errors of the last hour, and memory that has no spare rows left."""
    errors = select(GPU_ECC_ERRORS, Matcher.equal(ECC_KIND, "uncorrected")).rate(_HOUR)
    failed = select(GPU_REMAPPED_ROWS, Matcher.equal(ROW_KIND, "failed"))
    bad, worn = (each.aggregate("max", GPU).compare(">", 0) for each in (errors, failed))
    return _told(bad.union(worn), GPU)


def _throttled(_: Fleet) -> Expr:
    return _told(_slowed().aggregate("max", GPU).compare(">", _MOSTLY), GPU)


def _slowed(*matchers: Matcher) -> Expr:
    return select(GPU_THROTTLED, Matcher.among(THROTTLE, _SLOWED_BY), *matchers).over_time("avg", TILE.span)


def _near_full(_: Fleet) -> Expr:
    """Find cards whose free memory never came above the limit for minutes."""
    free = select(GPU_MEMORY_FREE).over_time("max", TILE.span).aggregate("max", *ON_CARD)
    share = free / select(GPU_MEMORY_TOTAL).aggregate("max", *ON_CARD)
    return _told(share.compare("<", _NEAR_FULL), *ON_CARD)


def _idle_with_queue(_: Fleet) -> Expr:
    """Find replicas with requests waiting all the time and no card that ever did anything.

    How busy an instance of a divided card is cannot be told well enough to say so.
    """
    whole = Matcher.equal(PARTITION, "")
    busy = select(GPU_UTILIZATION, whole).over_time("max", TILE.span).aggregate("max", *ON_CARD)
    idle = busy.per(CLAIMS.select(), ON_CARD).aggregate("max", MODEL, REPLICA).compare("<", _IDLE)
    waiting = select(REQUESTS_WAITING).over_time("min", TILE.span).aggregate("sum", REPLICA).compare(">", 0)
    return idle.intersect(waiting, on=(REPLICA,))


_WHY_DOWN = name(select(GPU_TROUBLE, _THIS_CARD), GPU_FAILURE, of=GPU)
_WHICH_XID = name(_recent_xids(_THIS_CARD), XID, of=GPU)
_WHY_SLOW = name(_slowed(_THIS_CARD).compare(">", _MOSTLY), THROTTLE, of=GPU)


def _ticket(delay: timedelta, expression: Callable[[Fleet], Expr]) -> tuple[AlertRule, ...]:
    return (AlertRule(severity=Severity.TICKET, expression=expression, delay=delay),)


GROUP = AlertGroup(
    name="gpu",
    alerts=(
        Alert(
            name="LLMGPULost",
            meaning="A card that a replica uses, or that was there, cannot be reached.",
            rules=_ticket(timedelta(minutes=2), _lost),
            summary=f"{_WHOSE}a GPU{_AT_REPLICA} is lost",
            description=lambda _: (
                f"{_CARD_NAME} has not answered any source for 2m; reason: {_WHY_DOWN}. Expected: an answer per scrape."
            ),
            board="fleet",
            drill="gpu-lost",
        ),
        Alert(
            name="LLMGPUXid",
            meaning="The driver reported an error of a card (Xid) in the last ten minutes.",
            rules=_ticket(timedelta(), _xid),
            summary=f"{_WHOSE}a GPU{_AT_REPLICA} reported an Xid error",
            description=lambda _: (
                f"{_CARD_NAME} reported Xid {_WHICH_XID} {{{{ $value | humanizeDuration }}}} ago. Expected: none."
            ),
            board="fleet",
        ),
        Alert(
            name="LLMGPUEccUncorrected",
            meaning="A card had memory errors that could not be corrected in the last hour, or has no spare rows left.",
            rules=_ticket(timedelta(), _ecc),
            summary=f"{_WHOSE}memory of a GPU{_AT_REPLICA} fails",
            description=lambda _: (
                f"{_CARD_NAME} has uncorrectable memory errors, or rows that could not be replaced. Expected: none."
            ),
            board="fleet",
        ),
        Alert(
            name="LLMGPUThrottled",
            meaning="A card has been slowed down by heat or by its power supply most of the time for minutes.",
            rules=_ticket(timedelta(minutes=5), _throttled),
            summary=f"{_WHOSE}a GPU{_AT_REPLICA} is slowed down",
            description=lambda _: (
                f"{_CARD_NAME} was slowed down {{{{ $value | humanizePercentage }}}} of the last 5m (limit 50%);"
                f" reason: {_WHY_SLOW}."
            ),
            board="fleet",
            drill="gpu-throttled",
        ),
        Alert(
            name="LLMGPUMemoryNearFull",
            meaning="A card has had less than 2 % of its memory free for minutes: the next allocation may fail.",
            rules=_ticket(timedelta(minutes=10), _near_full),
            summary=f"{_WHOSE}memory of a GPU{_AT_REPLICA} is nearly full",
            description=lambda _: (
                f"{_CARD_NAME} has {{{{ $value | humanizePercentage }}}} of its memory free (limit 2%)."
            ),
            board="fleet",
        ),
        Alert(
            name="LLMGPUIdleWithQueue",
            meaning="Requests wait at a replica all the time, and none of its cards does anything.",
            rules=_ticket(timedelta(minutes=2), _idle_with_queue),
            summary=f"{MODEL_NAME}: requests wait at {REPLICA_NAME} and its GPUs are idle",
            description=lambda _: (
                f"For 5m requests have waited at {REPLICA_NAME} while its cards were busy at most"
                " {{ $value | humanizePercentage }} of the time (limit 5%)."
            ),
            board="fleet",
        ),
    ),
)
