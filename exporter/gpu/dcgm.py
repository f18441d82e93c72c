"""DCGM: a page of NVIDIA's dcgm-exporter -> readings. Mebibytes, millijoules, megahertz and percent become base units.

Labels have had several spellings, and the NVLink families another one still. A blank is a number close to the largest
one of its type. On a divided card every instance repeats the card's sensors, so they are taken once; an instance has
no GPU_UTIL that means anything, only GR_ENGINE_ACTIVE. Total memory is what is used, free and reserved; versions
before 4.3 hide the reserved part.
"""

from collections.abc import Mapping

from exporter import catalogue
from exporter.gpu.columns import MEBIBYTE, Column, Row, rows, take
from exporter.gpu.field import Field
from exporter.gpu.page import PageSource
from exporter.gpu.reading import Card, Reading, Snapshot, Values
from exporter.gpu.throttle import throttle_fields, throttled
from exporter.parse import Page

__all__ = ["SOURCE", "read"]

_PREFIX = "DCGM_FI_"
_LEAST_BLANKS = (0x7FFFFFF0, 0x7FFFFFFFFFFFFFF0, 2**47)
"""Blanks of 32 bits, of 64 bits, and of floating point; each has 15 neighbours (not found, not permitted, …)."""
_GPU = ("UUID", "gpu_uuid", "uuid")
_NAMES = ("modelName", "model_name")
_HOSTS = ("hostname", "Hostname")
_XID = "DCGM_FI_DEV_XID_ERRORS"
_MANY = 10_000
"""NVIDIA's list has some hundreds of Xids."""
_MASKS = ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS")

_MEMORY = (
    Column(metric=catalogue.GPU_MEMORY_USED, names=("DCGM_FI_DEV_FB_USED",), factor=MEBIBYTE),
    Column(metric=catalogue.GPU_MEMORY_FREE, names=("DCGM_FI_DEV_FB_FREE",), factor=MEBIBYTE),
)
_BUSY_PART = Column(metric=catalogue.GPU_UTILIZATION, names=("DCGM_FI_PROF_GR_ENGINE_ACTIVE",))
_BANDWIDTH = (
    Column(metric=catalogue.GPU_MEMORY_BANDWIDTH, names=("DCGM_FI_PROF_DRAM_ACTIVE",)),
    Column(metric=catalogue.GPU_MEMORY_BANDWIDTH, names=("DCGM_FI_DEV_MEM_COPY_UTIL",), factor=0.01),
)
_BUSY = (Column(metric=catalogue.GPU_UTILIZATION, names=("DCGM_FI_DEV_GPU_UTIL",), factor=0.01), _BUSY_PART)
_SENSORS = (
    Column(metric=catalogue.GPU_TEMPERATURE, names=("DCGM_FI_DEV_GPU_TEMP",)),
    Column(metric=catalogue.GPU_POWER, names=("DCGM_FI_DEV_POWER_USAGE",)),
    Column(
        metric=catalogue.GPU_POWER_LIMIT, names=("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "DCGM_FI_DEV_POWER_MGMT_LIMIT")
    ),
    Column(metric=catalogue.GPU_ENERGY, names=("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",), factor=1e-3),
    Column(metric=catalogue.GPU_SM_CLOCK, names=("DCGM_FI_DEV_SM_CLOCK",), factor=1e6),
    *(
        Column(metric=catalogue.GPU_ECC_ERRORS, names=(f"DCGM_FI_DEV_ECC_{short}_VOL_TOTAL",), detail=detail)
        for short, detail in (("SBE", "corrected"), ("DBE", "uncorrected"))
    ),
    *(
        Column(metric=catalogue.GPU_REMAPPED_ROWS, names=(f"DCGM_FI_DEV_{name}",), detail=detail)
        for name, detail in (
            ("CORRECTABLE_REMAPPED_ROWS", "correctable"),
            ("UNCORRECTABLE_REMAPPED_ROWS", "uncorrectable"),
            ("ROW_REMAP_PENDING", "pending"),
            ("ROW_REMAP_FAILURE", "failed"),
        )
    ),
    Column(metric=catalogue.GPU_PCIE_REPLAYS, names=("DCGM_FI_DEV_PCIE_REPLAY_COUNTER",)),
)
_LINK_ERRORS = tuple(
    f"DCGM_FI_DEV_NVLINK_{kind}_ERROR_COUNT_TOTAL" for kind in ("CRC_FLIT", "CRC_DATA", "REPLAY", "RECOVERY")
)
_OF_PARTS = frozenset(name for column in (*_MEMORY, _BUSY_PART) for name in column.names) | {
    "DCGM_FI_DEV_FB_TOTAL",
    "DCGM_FI_DEV_FB_RESERVED",
    "DCGM_FI_PROF_DRAM_ACTIVE",
}


def read(page: Page) -> Snapshot:
    """Read a page."""
    readings, dropped = [], page.dropped
    for card, row in rows(page, _place, _is_blank).items():
        values = Values()
        total = _total(row)
        memory = _MEMORY if total != 0 else ()  # a card without memory of its own, whose use says nothing either
        if card.partition:
            take(row, (*memory, _BUSY_PART, _BANDWIDTH[0]), values)
        else:
            take(row, (*_first(row, *_BUSY), *memory, *_first(row, *_BANDWIDTH), *_SENSORS), values)
            _take_rest(row, values)
        values.take(catalogue.GPU_MEMORY_TOTAL, total * MEBIBYTE if total else None)
        dropped += values.dropped
        readings.append(Reading(card=card, facts=_facts(row), values=tuple(values.kept)))
    return Snapshot(readings=tuple(readings), dropped=dropped)


def last_xids(page: Page) -> dict[str, int]:
    """Answer the number of the last Xid of each card, 0 if there was none."""
    found = rows(page, _place, _is_blank)
    return {card.gpu: int(row.numbers[_XID]) for card, row in found.items() if 0 <= row.numbers.get(_XID, -1) < _MANY}


def _place(name: str, labels: Mapping[str, str]) -> tuple[Card, str] | None:
    """Find the card of a series; sensors of an instance are those of the card."""
    if not name.startswith(_PREFIX):
        return None
    gpu = _first_of(labels, _GPU) or "/".join(filter(None, (_first_of(labels, _HOSTS), labels.get("gpu", ""))))
    if not gpu:
        return None
    partition = labels.get("GPU_I_ID", "")
    if partition and name not in _OF_PARTS:
        if name in {"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_MEM_COPY_UTIL"}:
            return None
        partition = ""
    return Card(gpu=gpu, partition=partition), name


def _first(row: Row, *columns: Column) -> tuple[Column, ...]:
    """Answer the first column that the row has a number for; they differ in their unit."""
    return next(((column,) for column in columns if column.names[0] in row.numbers), ())


def _take_rest(row: Row, values: Values) -> None:
    """Take what is not one number for one number."""
    links = [row.numbers[name] for name in _LINK_ERRORS if name in row.numbers]
    values.take(catalogue.GPU_NVLINK_ERRORS, sum(links) if links else None)
    mask = next((row.numbers[name] for name in _MASKS if name in row.numbers), None)
    if mask is not None and 0 <= mask < 2**32:
        throttled(int(mask), values)


def _total(row: Row) -> float | None:
    """Answer a card's memory, mebibytes; None where it is not told."""
    used, free, reserved = (row.numbers.get(f"DCGM_FI_DEV_FB_{name}") for name in ("USED", "FREE", "RESERVED"))
    total = row.numbers.get("DCGM_FI_DEV_FB_TOTAL")
    if total is None and used is not None and free is not None:
        return used + free + (reserved or 0.0)
    return total


def _facts(row: Row) -> dict[str, str]:
    return {
        catalogue.CARD.name: _first_of(row.labels, _NAMES),
        catalogue.DRIVER.name: row.labels.get("DCGM_FI_DRIVER_VERSION", ""),
        catalogue.PCI.name: row.labels.get("pci_bus_id", "").lower()[-12:],
        catalogue.HOSTNAME.name: _first_of(row.labels, _HOSTS),
    }


def _first_of(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((labels[name] for name in names if labels.get(name)), "")


def _is_blank(number: float) -> bool:
    return any(least <= number <= least + 15 for least in _LEAST_BLANKS)


_TOTAL = Field(
    metric=catalogue.GPU_MEMORY_TOTAL,
    names=("DCGM_FI_DEV_FB_TOTAL", "DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE + DCGM_FI_DEV_FB_RESERVED"),
)
_INFO = tuple(
    Field(metric=catalogue.GPU_INFO, names=names, detail=label.name)
    for label, names in (
        (catalogue.CARD, _NAMES),
        (catalogue.DRIVER, ("DCGM_FI_DRIVER_VERSION",)),
        (catalogue.PCI, ("pci_bus_id",)),
        (catalogue.HOSTNAME, _HOSTS),
    )
)
_REST = (
    Field(metric=catalogue.GPU_NVLINK_ERRORS, names=(" + ".join(_LINK_ERRORS),)),
    Field(metric=catalogue.GPU_XID_ERRORS, names=(_XID,)),
    Field(metric=catalogue.GPU_XID_TIME, names=(_XID,)),
)
SOURCE = PageSource(
    name="dcgm",
    read=read,
    place=_place,
    fields=(*_INFO, *_BUSY, *_MEMORY, _TOTAL, *_BANDWIDTH, *_SENSORS, *throttle_fields(_MASKS), *_REST),
    last_xids=last_xids,
)
