"""What the worker says arrives as it was said."""

import pytest

from exporter import catalogue
from exporter.gpu.reading import Card, Failure, Hold, Reading, Snapshot, Value, Xid
from exporter.gpu.wire import line, snapshot

FULL = Snapshot(
    readings=(
        Reading(
            card=Card(gpu="GPU-a", partition="3"),
            facts={"card": "H100"},
            values=(
                Value(metric=catalogue.GPU_POWER, number=12.5),
                Value(metric=catalogue.GPU_THROTTLED, number=1.0, detail="power_cap"),
            ),
            failures=frozenset({Failure.UNKNOWN}),
            sentence="a sentence\nof two lines",
            alias="MIG-a",
            holds=(Hold(ports=(8000, 8001), memory=11.0), Hold(ports=(), memory=None)),
        ),
    ),
    xids=(Xid(gpu="GPU-a", xid=79, count=2, at=1.5),),
    dropped=13,
)


@pytest.mark.parametrize("told", [FULL, Snapshot(), Snapshot(failure=Failure.NO_GPU, sentence="none")])
def test_a_snapshot_survives_the_way(told: Snapshot) -> None:
    text = line(told)
    assert "\n" not in text
    assert snapshot(text) == told
