"""AMD: a page of AMD's device-metrics-exporter -> readings, in base units instead of MiB, microjoules, MHz, percent.

Everything is a gauge there, and the configuration may put a prefix before every name. What a card cannot tell is the
largest number of some width. On a divided card only partition 0 has sensors; they are the card's, and how busy a
partition is nobody tells.
"""

import re
from collections.abc import Mapping

from exporter import catalogue
from exporter.gpu.columns import MEBIBYTE, Column, Row, rows, take
from exporter.gpu.field import Field
from exporter.gpu.page import PageSource
from exporter.gpu.reading import Card, Failure, Reading, Snapshot, Values
from exporter.parse import Page

__all__ = ["SOURCE", "read"]

_NAME = re.compile(r"(?:\A|_)((?:gpu|pcie)_\w+)\Z")
_BLANKS = frozenset(map(float, (2**16 - 1, 2**31 - 1, 2**32 - 1, 2**64 - 1)))
_CLOCK = "gpu_clock"
_CLOCKS = frozenset({"GPU_CLOCK_TYPE_SYSTEM", "system"})
_TOTAL = "gpu_total_vram"
_USED, _FREE = "gpu_used_vram", "gpu_free_vram"
_LEFT = f"{_TOTAL} - {_USED}"
_OF_PARTS = frozenset({_TOTAL, _USED, _FREE})
_CARD_NAMES = ("card_series", "card_model")
_UNDIVIDED = frozenset({"", "spx"})

_MEMORY = tuple(
    Column(metric=metric, names=names, factor=MEBIBYTE)
    for metric, names in (
        (catalogue.GPU_MEMORY_TOTAL, (_TOTAL,)),
        (catalogue.GPU_MEMORY_USED, (_USED,)),
        (catalogue.GPU_MEMORY_FREE, (_FREE, _LEFT)),
    )
)
_BUSY = (
    Column(metric=catalogue.GPU_UTILIZATION, names=("gpu_gfx_activity",), factor=0.01),
    Column(metric=catalogue.GPU_MEMORY_BANDWIDTH, names=("gpu_umc_activity",), factor=0.01),
)
_SENSORS = (
    Column(metric=catalogue.GPU_TEMPERATURE, names=("gpu_junction_temperature", "gpu_edge_temperature")),
    Column(metric=catalogue.GPU_POWER, names=("gpu_package_power", "gpu_average_package_power", "gpu_power_usage")),
    Column(metric=catalogue.GPU_ENERGY, names=("gpu_energy_consumed",), factor=1e-6),
    Column(metric=catalogue.GPU_SM_CLOCK, names=(_CLOCK,), factor=1e6),
    Column(metric=catalogue.GPU_ECC_ERRORS, names=("gpu_ecc_correct_total",), detail="corrected"),
    Column(metric=catalogue.GPU_ECC_ERRORS, names=("gpu_ecc_uncorrect_total",), detail="uncorrected"),
    Column(metric=catalogue.GPU_PCIE_REPLAYS, names=("pcie_replay_count",)),
)
_SLOWED = {
    "power_cap": ("gpu_violation_ppt_residency_percentage",),
    "hardware_thermal": (
        *("gpu_violation_socket_thermal_residency_percentage", "gpu_violation_hbm_thermal_residency_percentage"),
        "gpu_violation_vr_thermal_residency_percentage",
    ),
}


def read(page: Page) -> Snapshot:
    """Read a page."""
    readings, dropped = [], page.dropped
    for card, row in rows(page, _place, _BLANKS.__contains__).items():
        values = Values()
        divided = _is_divided(row.labels)
        if row.numbers.get(_TOTAL) == 0:  # no memory of its own, so its use says nothing either
            row.numbers = {name: number for name, number in row.numbers.items() if name not in _OF_PARTS}
        elif {_TOTAL, _USED} <= row.numbers.keys():
            row.numbers[_LEFT] = row.numbers[_TOTAL] - row.numbers[_USED]
        if card.partition:
            take(row, _MEMORY, values)
        else:
            take(row, (*(() if divided else (*_BUSY, *_MEMORY)), *_SENSORS), values)
            _take_slowed(row, values)
        dropped += values.dropped
        if not card.partition or _has_memory(values):
            readings.append(_reading(card, row, values))
    return Snapshot(readings=tuple(readings), dropped=dropped)


def _place(name: str, labels: Mapping[str, str]) -> tuple[Card, str] | None:
    match = _NAME.search(name)
    gpu = labels.get("gpu_uuid") or labels.get("serial_number")
    gpu = gpu or "/".join(filter(None, (labels.get("hostname", ""), labels.get("gpu_id", ""))))
    if match is None or not gpu or (match[1] == _CLOCK and labels.get("clock_type") not in _CLOCKS):
        return None
    partition = labels.get("gpu_partition_id", "0")
    if not _is_divided(labels):
        partition = ""
    elif match[1] not in _OF_PARTS:
        if partition != "0":
            return None
        partition = ""
    return Card(gpu=gpu, partition=partition), match[1]


def _is_divided(labels: Mapping[str, str]) -> bool:
    return labels.get("gpu_compute_partition_type", "").lower() not in _UNDIVIDED


def _take_slowed(row: Row, values: Values) -> None:
    """Take throttle reasons where the card measures any of them."""
    for reason, names in _SLOWED.items():
        shares = [row.numbers[name] for name in names if name in row.numbers]
        if shares:
            values.take(catalogue.GPU_THROTTLED, float(max(shares) > 0), reason)


def _has_memory(values: Values) -> bool:
    return any(value.metric is catalogue.GPU_MEMORY_TOTAL for value in values.kept)


def _reading(card: Card, row: Row, values: Values) -> Reading:
    ill = not card.partition and row.numbers.get("gpu_health") == 0
    return Reading(
        card=card,
        facts={
            catalogue.CARD.name: next(filter(None, map(row.labels.get, _CARD_NAMES)), ""),
            catalogue.DRIVER.name: row.labels.get("driver_version", ""),
            catalogue.HOSTNAME.name: row.labels.get("hostname", ""),
        },
        values=tuple(values.kept),
        failures=frozenset({Failure.UNKNOWN}) if ill else frozenset(),
        sentence=f"{card.gpu}: AMD's exporter calls the card unhealthy" if ill else "",
    )


def _largest(names: tuple[str, ...]) -> str:
    return f"max({', '.join(names)})" if len(names) > 1 else names[0]


SOURCE = PageSource(
    name="amd",
    read=read,
    place=_place,
    fields=(
        *(
            Field(metric=catalogue.GPU_INFO, names=names, detail=label.name)
            for label, names in (
                (catalogue.CARD, _CARD_NAMES),
                (catalogue.DRIVER, ("driver_version",)),
                (catalogue.HOSTNAME, ("hostname",)),
            )
        ),
        *(*_MEMORY, *_BUSY, *_SENSORS),
        *(
            Field(metric=catalogue.GPU_THROTTLED, names=(_largest(names),), detail=reason)
            for reason, names in _SLOWED.items()
        ),
    ),
)
