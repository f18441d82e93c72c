"""Status: what we know about a replica itself, beside the engine's own numbers -> the first part of its page."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from exporter import catalogue
from exporter.catalogue import Metric
from exporter.expose import Point, page
from exporter.failures import Reason, State

__all__ = ["Status", "status_text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The outcome of one scrape. `errors` and `dropped` count since the exporter started; None is not known.

    `drain_end` is the Unix time at which the drain marker ends, None without a marker.
    """

    model: str
    up: bool
    state: State
    duration: float
    errors: Mapping[Reason, int]
    dropped: int
    drain_end: float | None = None
    version: str | None = None
    missing: tuple[Metric, ...] = ()
    unmapped: int | None = None


def status_text(status: Status) -> str:
    """Write a status as a page."""
    return page(_samples(status))


def _samples(status: Status) -> Iterator[tuple[Point, float]]:
    model = ((catalogue.MODEL.name, status.model),)
    yield Point(metric=catalogue.REPLICA_UP, labels=model), float(status.up)
    for state in State:
        labels = (*model, (catalogue.STATE.name, state.value))
        yield Point(metric=catalogue.REPLICA_STATE, labels=labels), float(state is status.state)
    yield Point(metric=catalogue.REPLICA_DRAINING, labels=model), float(status.drain_end is not None)
    if status.drain_end is not None:
        yield Point(metric=catalogue.DRAIN_EXPIRY, labels=model), status.drain_end
    if status.up:
        version = (catalogue.VERSION.name, status.version or "")
        yield Point(metric=catalogue.REPLICA_INFO, labels=(*model, version)), 1.0
    yield Point(metric=catalogue.SCRAPE_DURATION), status.duration
    for reason in Reason:
        label = (catalogue.SCRAPE_ERROR.name, reason.value)
        yield Point(metric=catalogue.SCRAPE_ERRORS, labels=(label,)), float(status.errors.get(reason, 0))
    for metric in status.missing:
        yield Point(metric=catalogue.MISSING_SERIES, labels=((catalogue.MISSING.name, metric.name),)), 1.0
    if status.unmapped is not None:
        yield Point(metric=catalogue.UNMAPPED_SERIES), float(status.unmapped)
    yield Point(metric=catalogue.DROPPED_SAMPLES), float(status.dropped)
