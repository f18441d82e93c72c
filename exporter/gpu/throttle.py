"""Throttle: NVIDIA's bit mask of clock event reasons -> one 0 or 1 per reason; NVML and DCGM share the bits.

An idle card, application clocks and display clocks also have bits; they slow nobody down.
"""

from exporter import catalogue
from exporter.gpu.field import Field
from exporter.gpu.reading import Values

__all__ = ["throttle_fields", "throttled"]

_BITS = {
    "power_cap": 0x4,
    "software_thermal": 0x20,
    "hardware_thermal": 0x40,
    "hardware_slowdown": 0x8,
    "power_brake": 0x80,
}


def throttled(mask: int, values: Values) -> None:
    """Take one value per reason of the catalogue."""
    for reason in catalogue.THROTTLE.values:
        values.take(catalogue.GPU_THROTTLED, float(bool(mask & _BITS[reason])), reason)


def throttle_fields(names: tuple[str, ...]) -> tuple[Field, ...]:
    """Say that every reason is a bit of the same number."""
    return tuple(Field(metric=catalogue.GPU_THROTTLED, names=names, detail=reason) for reason in _BITS)
