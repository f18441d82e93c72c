"""GPU: a card is lost, ill, slow, full or idle; joined to the replica and the model that suffer.

Trouble is found per card, whatever instance of it a replica uses, and told once per replica. A card that serves no
replica that we know is told without one. The expressions read recorded claims; without claims and cards they are empty,
so a fleet without GPUs hears nothing. When whoever tells of cards is gone, that is one ticket, not one for each card.
"""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import TypeVar

from alerts.annotations import MODEL_NAME, REPLICA_AND_ADDRESS, REPLICA_NAME, choose, name
from alerts.model import Alert, AlertGroup, AlertRule, Louder, Severity
from alerts.sight import WHY_DRIVER, WHY_PAGE, out_of_sight, sources_down
from exporter.catalogue import (
    ECC_KIND,
    GPU,
    GPU_ECC_ERRORS,
    GPU_FAILURE,
    GPU_MEMORY_FREE,
    GPU_MEMORY_TOTAL,
    GPU_ORIGIN,
    GPU_REMAPPED_ROWS,
    GPU_SOURCE,
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
from exporter.thresholds import Thresholds
from prometheus.hardware import CLAIMS, ON_CARD
from prometheus.partition import partition
from prometheus.promql import Expr, Matcher, Seconds, number_text
from prometheus.series import last_known, select
from prometheus.stack import INSTANCE
from prometheus.windows import SHORT, TILE

__all__ = ["GROUP"]

_HOUR = SHORT[-1]
_HARMLESS_XIDS = ("45",)
"""45 follows whenever a process is killed while it uses the card."""
_SLOWED_BY = ("software_thermal", "hardware_thermal", "hardware_slowdown", "power_brake")
"""At its power cap a busy card is where it should be."""

_THIS_CARD = Matcher.equal(GPU, "%[1]q")
_CARD_NAME = f"{{{{ $labels.{GPU.name} }}}}"
_WHOSE = f"{{{{ if $labels.{MODEL.name} }}}}{MODEL_NAME}: {{{{ end }}}}"
_AT_REPLICA = f"{{{{ if $labels.{REPLICA.name} }}}} of {REPLICA_NAME}{{{{ end }}}}"

Limit = TypeVar("Limit", Decimal, timedelta)
Trouble = Callable[[Limit], Expr]
Setting = Callable[[Thresholds], Limit]


def _told(trouble: Expr, *on: Label) -> Expr:
    """Tell trouble of a card to each replica that uses it, or to nobody in particular."""
    claims = CLAIMS.select()
    return trouble.per(claims, on).union(trouble.without(claims, on=on))


def _told_beyond(trouble: Trouble[Limit], setting: Setting[Limit], on: tuple[Label, ...], fleet: Fleet) -> Expr:
    """Tell trouble beyond the limit of the model; beyond the default where a card serves nobody we know."""
    first, *others = (
        trouble(part.value).per(CLAIMS.select(*part.matchers), on) for part in partition(fleet.thresholds, setting)
    )
    nobodys = trouble(setting(fleet.thresholds.default)).without(CLAIMS.select(), on=on)
    return first.union(*others, nobodys)


def _lost(_: Fleet) -> Expr:
    """Find cards that their source does not show any more (0), and those that no source ever showed (1).

    A card whose source is gone may be well; while any source is, one that was never seen may stand behind it.
    """
    claims = CLAIMS.select()
    up = last_known(GPU_UP).aggregate("max", GPU)
    unseen = select(GPU_TROUBLE, Matcher.equal(GPU_FAILURE, "unseen")).aggregate("max", GPU)
    never = claims.without(up, unseen, on=(GPU,)).unless_any(out_of_sight())
    return _told(up.compare("==", 0), GPU).union(never)


def _news(span: timedelta, *matchers: Matcher) -> Expr:
    at = last_known(GPU_XID_TIME, Matcher.outside(XID, _HARMLESS_XIDS), *matchers)
    return at.age().compare("<", Seconds(span=span))


def _xid(span: timedelta) -> Expr:
    return _news(span).aggregate("min", GPU)


def _ecc(_: Fleet) -> Expr:
    """Find uncorrectable errors of the last hour, and memory that has no spare rows left."""
    errors = select(GPU_ECC_ERRORS, Matcher.equal(ECC_KIND, "uncorrected")).rate(_HOUR)
    failed = last_known(GPU_REMAPPED_ROWS, Matcher.equal(ROW_KIND, "failed"))
    bad, worn = (each.aggregate("max", GPU).compare(">", 0) for each in (errors, failed))
    return _told(bad.union(worn), GPU)


def _slowed(*matchers: Matcher) -> Expr:
    return select(GPU_THROTTLED, Matcher.among(THROTTLE, _SLOWED_BY), *matchers).over_time("avg", TILE.span)


def _throttled(share: Decimal) -> Expr:
    return _slowed().aggregate("max", GPU).compare(">", share)


def _near_full(least: Decimal) -> Expr:
    """Find cards whose free memory never came above the limit for minutes."""
    free = select(GPU_MEMORY_FREE).over_time("max", TILE.span).aggregate("max", *ON_CARD)
    return (free / last_known(GPU_MEMORY_TOTAL).aggregate("max", *ON_CARD)).compare("<", least)


def _idle_with_queue(fleet: Fleet) -> Expr:
    """Find replicas with requests waiting all the time and no card that ever did anything.

    How busy an instance of a divided card is cannot be told well enough to say so.
    """
    whole = Matcher.equal(PARTITION, "")
    busy = select(GPU_UTILIZATION, whole).over_time("max", TILE.span).aggregate("max", *ON_CARD)
    first, *others = (
        busy.per(CLAIMS.select(*part.matchers), ON_CARD).aggregate("max", MODEL, REPLICA).compare("<", part.value)
        for part in partition(fleet.thresholds, lambda of: of.gpu_idle)
    )
    waiting = select(REQUESTS_WAITING).over_time("min", TILE.span).aggregate("sum", REPLICA).compare(">", 0)
    return first.union(*others).intersect(waiting, on=(REPLICA,))


_WHY_DOWN = name(select(GPU_TROUBLE, _THIS_CARD), GPU_FAILURE, of=GPU)
_WHICH_CARDS = "{{ if $value }}{{ $value }} cards{{ else }}Its cards{{ end }} cannot be seen and may be well or lost"
_WHO = (
    f"{{{{ if $labels.{GPU_ORIGIN.name} }}}}{{{{ $labels.{GPU_SOURCE.name} }}}} {{{{ $labels.{GPU_ORIGIN.name} }}}}"
    f"{{{{ else if $labels.{GPU_SOURCE.name} }}}}the driver of {{{{ $labels.{INSTANCE.name} }}}}"
    f"{{{{ else }}}}the exporter {{{{ $labels.{INSTANCE.name} }}}}{{{{ end }}}}"
)
_WHY_SILENT = (
    f"{{{{ if $labels.{GPU_ORIGIN.name} }}}}{name(WHY_PAGE, GPU_FAILURE, of=GPU_ORIGIN)}"
    f"{{{{ else if $labels.{GPU_SOURCE.name} }}}}{name(WHY_DRIVER, GPU_FAILURE, of=INSTANCE)}"
    "{{ else }}Prometheus cannot read /gpu there{{ end }}"
)


def _which_xid(fleet: Fleet) -> str:
    longest = max(part.value for part in partition(fleet.thresholds, lambda of: of.gpu_xid))
    return name(_news(longest, _THIS_CARD), XID, of=GPU)


def _why_slow(fleet: Fleet) -> str:
    least = min(part.value for part in partition(fleet.thresholds, lambda of: of.gpu_throttled))
    return name(_slowed(_THIS_CARD).compare(">", least), THROTTLE, of=GPU)


def _limit(fleet: Fleet, setting: Setting[Decimal]) -> str:
    return choose(fleet.thresholds, setting, lambda share: f"limit {number_text(share * 100)}%")


def _ticket(delay: timedelta, expression: Callable[[Fleet], Expr]) -> tuple[AlertRule, ...]:
    return (AlertRule(severity=Severity.TICKET, expression=expression, delay=delay),)


GROUP = AlertGroup(
    name="gpu",
    interval=timedelta(seconds=30),
    alerts=(
        Alert(
            name="LLMGPULost",
            meaning="A card that was there is not any more, or one that fleet.yml names is shown by no source.",
            rules=_ticket(timedelta(minutes=2), _lost),
            summary=(
                f"{_WHOSE}a GPU{_AT_REPLICA} is {{{{ if $value }}}}shown by no source{{{{ else }}}}lost{{{{ end }}}}"
            ),
            description=lambda _: (
                f"{{{{ if $value }}}}fleet.yml names {_CARD_NAME}, and no source has shown it for 2m: the name may be"
                f" wrong, or nobody tells of its host.{{{{ else }}}}{_CARD_NAME} has not answered any source for 2m;"
                f" reason: {_WHY_DOWN}. Expected: an answer per scrape.{{{{ end }}}}"
            ),
            board="fleet",
            drill="gpu-lost",
        ),
        Alert(
            name="LLMGPUSourceDown",
            meaning="Who tells of cards is gone: a page, a driver, an exporter. The cards behind it cannot be seen.",
            rules=_ticket(timedelta(minutes=2), sources_down),
            summary=f"GPUs behind {_WHO} cannot be seen",
            description=lambda _: (
                f"{_WHO} has not told of its cards for 2m; reason: {_WHY_SILENT}. {_WHICH_CARDS}; no other GPU alert"
                " can speak of them."
            ),
            board="fleet",
            drill="gpu-source-gone",
            quiet_while=(Louder(alertname="LLMMonitoringBlind", labels=()),),
        ),
        Alert(
            name="LLMGPUXid",
            meaning="The driver reported an error of a card (Xid) within the last minutes.",
            rules=_ticket(timedelta(), partial(_told_beyond, _xid, lambda of: of.gpu_xid, (GPU,))),
            summary=f"{_WHOSE}a GPU{_AT_REPLICA} reported an Xid error",
            description=lambda fleet: (
                f"{_CARD_NAME} reported Xid {_which_xid(fleet)} {{{{ $value | humanizeDuration }}}} ago."
                " Expected: none."
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
            rules=_ticket(timedelta(minutes=5), partial(_told_beyond, _throttled, lambda of: of.gpu_throttled, (GPU,))),
            summary=f"{_WHOSE}a GPU{_AT_REPLICA} is slowed down",
            description=lambda fleet: (
                f"{_CARD_NAME} was slowed down {{{{ $value | humanizePercentage }}}} of the last 5m"
                f" ({_limit(fleet, lambda of: of.gpu_throttled)}); reason: {_why_slow(fleet)}."
            ),
            board="fleet",
            drill="gpu-throttled",
        ),
        Alert(
            name="LLMGPUMemoryNearFull",
            meaning="A card has had hardly any of its memory free for minutes: the next allocation may fail.",
            rules=_ticket(
                timedelta(minutes=10), partial(_told_beyond, _near_full, lambda of: of.gpu_memory_free, ON_CARD)
            ),
            summary=f"{_WHOSE}memory of a GPU{_AT_REPLICA} is nearly full",
            description=lambda fleet: (
                f"{_CARD_NAME} has {{{{ $value | humanizePercentage }}}} of its memory free"
                f" ({_limit(fleet, lambda of: of.gpu_memory_free)})."
            ),
            board="fleet",
        ),
        Alert(
            name="LLMGPUIdleWithQueue",
            meaning="Requests wait at a replica all the time, and none of its cards does anything.",
            rules=_ticket(timedelta(minutes=2), _idle_with_queue),
            summary=f"{MODEL_NAME}: requests wait at {REPLICA_NAME} and its GPUs are idle",
            description=lambda fleet: (
                f"For 5m requests have waited at {REPLICA_AND_ADDRESS} while its cards were busy at most"
                f" {{{{ $value | humanizePercentage }}}} of the time ({_limit(fleet, lambda of: of.gpu_idle)})."
            ),
            board="fleet",
        ),
    ),
)
