"""The `thresholds` part of fleet.yml -> when alerts speak, per model. The one table of what is not an objective."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from exporter.document import Node

__all__ = ["ThresholdTable", "Thresholds", "thresholds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """What is too much for one model. Shares are 0 to 1.

    collapse              good requests, as a share of those promised, below which a model has collapsed
    stuck_after           time in which a busy replica gives no token
    stuck_after_booking   the same for engines that count the tokens of a request when it ends: longer than any answer
    outages               times that a replica went away or restarted within an hour
    cold_start            time that loading may take; a model that starts with its monitoring is not missed before
    outlier               times that a replica is slower than the median of its pool
    queue                 requests that wait per ready replica, at all times for minutes
    kv_cache              share of the KV cache in use
    preempted             preemptions per request
    prefix_cache          share of its usual prefix cache hits that a model may lose
    rejected              share of the requests turned away
    aborted               share of the requests whose client went away
    forecast              share of the KV cache in use at busy hours, a week from now
    saturated             share of the requests beyond the last bucket of a histogram
    gpu_xid               time for which an Xid error of a card is told
    gpu_throttled         share of the time that heat or a power supply slows a card down
    gpu_memory_free       share of a card's memory that has to be free
    gpu_idle              share of the time that a card works, below which it is idle while requests wait
    """

    collapse: Decimal = Decimal("0.5")
    stuck_after: timedelta = timedelta(minutes=2)
    stuck_after_booking: timedelta = timedelta(minutes=15)
    outages: int = 3
    cold_start: timedelta = timedelta(minutes=10)
    outlier: int = 2
    queue: int = 4
    kv_cache: Decimal = Decimal("0.95")
    preempted: Decimal = Decimal("0.2")
    prefix_cache: Decimal = Decimal("0.5")
    rejected: Decimal = Decimal("0.01")
    aborted: Decimal = Decimal("0.2")
    forecast: Decimal = Decimal("0.85")
    saturated: Decimal = Decimal("0.01")
    gpu_xid: timedelta = timedelta(minutes=10)
    gpu_throttled: Decimal = Decimal("0.5")
    gpu_memory_free: Decimal = Decimal("0.02")
    gpu_idle: Decimal = Decimal("0.05")


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdTable:
    """Thresholds of the fleet: `default`, and the models that differ from it."""

    default: Thresholds = Thresholds()
    models: Mapping[str, Thresholds] = field(default_factory=dict)


_LEAST_COUNT = 2  # once is chance, and as slow as the median is no outlier
_READERS: Mapping[object, Callable[[Node], Any]] = {
    Decimal: Node.share,
    timedelta: Node.duration,
    int: lambda node: node.count(at_least=_LEAST_COUNT),
}


def _thresholds(node: Node, base: Thresholds) -> Thresholds:
    """Read one model's thresholds; what is not said stays as in `base`."""
    readers = {each.name: _READERS[each.type] for each in fields(Thresholds)}
    parts = node.mapping(optional=tuple(readers))
    return replace(base, **{name: readers[name](part) for name, part in parts.items()})


def thresholds(node: Node) -> ThresholdTable:
    """Read the `thresholds` section."""
    parts = node.mapping(optional=("default", "models"))
    default = _thresholds(parts["default"], Thresholds()) if "default" in parts else Thresholds()
    models = parts["models"].entries("a mapping from model to thresholds") if "models" in parts else {}
    return ThresholdTable(default=default, models={m: _thresholds(n, default) for m, n in models.items()})
