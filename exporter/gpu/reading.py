"""Reading: what a source says about its cards at one moment; values that cannot be true never get into one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from exporter import catalogue
from exporter.catalogue import Metric

__all__ = ["Card", "Failure", "Hold", "Reading", "Snapshot", "SourceError", "Value", "Values", "Xid"]


class Failure(StrEnum):
    """What is wrong with a card, or why its source cannot tell; the catalogue's closed values."""

    LOST = "lost"
    RESET_REQUIRED = "reset_required"
    NO_POWER = "no_power"
    NO_PERMISSION = "no_permission"
    UNKNOWN = "unknown"
    UNSEEN = "unseen"
    NO_LIBRARY = "no_library"
    NO_DRIVER = "no_driver"
    DRIVER_MISMATCH = "driver_mismatch"
    NO_GPU = "no_gpu"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    STALE = "stale"
    UNREACHABLE = "unreachable"
    UNUSABLE = "unusable"


class SourceError(Exception):
    """A source cannot tell about any card; str() is the sentence for a person."""

    def __init__(self, failure: Failure, sentence: str) -> None:
        """Keep what is wrong."""
        super().__init__(sentence)
        self.failure = failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Identity of a card, or of a part of a divided one."""

    gpu: str
    partition: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One number; `detail` is the value of the metric's own label (reason, kind), if it has one."""

    metric: Metric
    number: float
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Memory that one process holds on a card, in bytes, and the local ports it or its ancestors listen on."""

    ports: tuple[int, ...]
    memory: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One card. `facts` are the labels of its info series; `alias` is another name that fleet.yml may use for it.

    Of a card that is not `seen` nobody can tell whether it is up: its source is what does not answer.
    """

    card: Card
    facts: Mapping[str, str] = field(default_factory=dict)
    values: tuple[Value, ...] = ()
    failures: frozenset[Failure] = frozenset()
    up: bool = True
    seen: bool = True
    sentence: str = ""
    alias: str = ""
    holds: tuple[Hold, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid:
    """Errors of one number that were new in this reading. `at` is Unix time of the last one."""

    gpu: str
    xid: int
    count: int
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything a source says at one moment; `dropped` values were left out, of which `notes` are sentences."""

    readings: tuple[Reading, ...] = ()
    xids: tuple[Xid, ...] = ()
    dropped: int = 0
    notes: tuple[str, ...] = ()
    failure: Failure | None = None
    sentence: str = ""


_LARGE = 2.0**53
_RANGES: Mapping[str, tuple[float, float]] = {
    metric.name: bounds
    for metric, bounds in (
        (catalogue.GPU_UTILIZATION, (0, 1)),
        (catalogue.GPU_MEMORY_BANDWIDTH, (0, 1)),
        (catalogue.GPU_MEMORY_USED, (0, 2.0**50)),
        (catalogue.GPU_MEMORY_FREE, (0, 2.0**50)),
        (catalogue.GPU_MEMORY_TOTAL, (1, 2.0**50)),
        (catalogue.GPU_TEMPERATURE, (-60, 250)),
        (catalogue.GPU_POWER, (0, 20_000)),
        (catalogue.GPU_POWER_LIMIT, (1, 20_000)),
        (catalogue.GPU_SM_CLOCK, (0, 20e9)),
        (catalogue.GPU_REMAPPED_ROWS, (0, 2.0**20)),
    )
}
"""What a number can be. Drivers and libraries answer 4294967295 or 9.2e18 once in days, or where they cannot tell."""


class Values:
    """Collects the numbers of one card; one that cannot be true is left out and counted."""

    def __init__(self) -> None:
        self.kept: list[Value] = []
        self.dropped = 0

    def take(self, metric: Metric, number: float | None, detail: str = "") -> None:
        """Keep a number in the metric's unit; None is one that is not known."""
        if number is None:
            return
        low, high = _RANGES.get(metric.name, (0, _LARGE))
        if low <= number <= high:
            self.kept.append(Value(metric=metric, number=float(number), detail=detail))
        else:
            self.dropped += 1
