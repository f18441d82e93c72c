"""Wire: a snapshot as one line of JSON and back, between the worker's process and ours."""

import json
from dataclasses import asdict
from typing import Any

from exporter.catalogue import METRICS
from exporter.gpu.reading import Card, Failure, Hold, Reading, Snapshot, Value, Xid

__all__ = ["line", "snapshot"]

_METRICS = {metric.name: metric for metric in METRICS}


def line(told: Snapshot) -> str:
    """Write a snapshot."""
    return json.dumps(
        {
            "readings": [_written(reading) for reading in told.readings],
            "xids": [asdict(xid) for xid in told.xids],
            "dropped": told.dropped,
            "failure": told.failure,
            "sentence": told.sentence,
        }
    )


def snapshot(text: str | bytes) -> Snapshot:
    """Read a snapshot; raises ValueError, KeyError or TypeError for anything else."""
    told = json.loads(text)
    return Snapshot(
        readings=tuple(map(_read, told["readings"])),
        xids=tuple(Xid(**xid) for xid in told["xids"]),
        dropped=told["dropped"],
        failure=Failure(told["failure"]) if told["failure"] else None,
        sentence=told["sentence"],
    )


def _written(reading: Reading) -> dict[str, Any]:
    return {
        "card": asdict(reading.card),
        "facts": dict(reading.facts),
        "values": [(value.metric.name, value.number, value.detail) for value in reading.values],
        "failures": sorted(reading.failures),
        "up": reading.up,
        "sentence": reading.sentence,
        "alias": reading.alias,
        "holds": [asdict(hold) for hold in reading.holds],
    }


def _read(told: dict[str, Any]) -> Reading:
    return Reading(
        card=Card(**told["card"]),
        facts=told["facts"],
        values=tuple(
            Value(metric=_METRICS[name], number=number, detail=detail) for name, number, detail in told["values"]
        ),
        failures=frozenset(map(Failure, told["failures"])),
        up=told["up"],
        sentence=told["sentence"],
        alias=told["alias"],
        holds=tuple(Hold(ports=tuple(hold["ports"]), memory=hold["memory"]) for hold in told["holds"]),
    )
