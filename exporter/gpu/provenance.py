"""Provenance: which source tells which metric of a card, and under which name. In: the sources. Out: cells of tables.

For METRICS.md alone: the exporter's own process never loads the driver's library.
"""

from collections.abc import Mapping

from exporter import catalogue
from exporter.catalogue import Metric
from exporter.gpu import nvml
from exporter.gpu.field import Field
from exporter.gpu.sources import DRIVER, PAGE_SOURCES

__all__ = ["TITLES", "ability", "is_told", "names"]

TITLES = tuple(source.upper() for source in catalogue.GPU_SOURCE.values)
_FIELDS: Mapping[str, tuple[Field, ...]] = {DRIVER: nvml.FIELDS} | {
    name: source.fields for name, source in PAGE_SOURCES.items()
}
_DESCRIBING = (catalogue.CARD, catalogue.DRIVER, catalogue.PCI, catalogue.HOSTNAME)


def is_told(metric: Metric) -> bool:
    """Tell whether any source tells the metric; others the exporter makes itself."""
    return any(field.metric is metric for fields in _FIELDS.values() for field in fields)


def ability(metric: Metric) -> tuple[str, ...]:
    """Say of each source whether it tells the metric, and of which of the metric's kinds if not of all."""
    return tuple(_ability(metric, source) for source in catalogue.GPU_SOURCE.values)


def names(metric: Metric) -> tuple[str, ...]:
    """Say under which names each source has the metric; kinds that come from the same names stand together."""
    return tuple(_cell(_of(metric, source)) for source in catalogue.GPU_SOURCE.values)


def _cell(fields: tuple[Field, ...]) -> str:
    by_detail: dict[str, tuple[str, ...]] = {}
    for field in fields:
        by_detail[field.detail] = (*by_detail.get(field.detail, ()), *field.names)
    by_names: dict[tuple[str, ...], list[str]] = {}
    for detail, found in by_detail.items():
        by_names.setdefault(found, []).append(detail)
    return "; ".join(_text(", ".join(filter(None, details)), found) for found, details in by_names.items())


def _text(details: str, found: tuple[str, ...]) -> str:
    first, *others = (f"`{name}`" for name in found)
    return f"{details}: " * bool(details) + first + (f", else {', '.join(others)}" if others else "")


def _of(metric: Metric, source: str) -> tuple[Field, ...]:
    return tuple(field for field in _FIELDS[source] if field.metric is metric)


def _ability(metric: Metric, source: str) -> str:
    if not is_told(metric):
        return "yes"
    told = list(dict.fromkeys(field.detail for field in _of(metric, source)))
    if not told:
        return "no"
    everything = [label.name for label in _DESCRIBING] if metric is catalogue.GPU_INFO else metric.labels[-1].values
    return "yes" if told == [""] or set(everything) <= set(told) else f"yes ({', '.join(told)})"
