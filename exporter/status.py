"""Status: what we know about a replica itself, beside the engine's own numbers -> the first part of its page."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from exporter import catalogue
from exporter.catalogue import Metric
from exporter.expose import Point, Template
from exporter.failures import Reason, State

__all__ = ["Serving", "Status", "status_text"]

_STATES = tuple(State)
_REASONS = tuple(Reason)
_IN_STATE = {state: tuple(float(state is each) for each in _STATES) for state in _STATES}
_NO_ERRORS = (0.0,) * len(_REASONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What a replica is for one model; `model` is empty where nobody told it."""

    model: str
    up: bool
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The outcome of one scrape. `errors` and `dropped` count since the exporter started; None is not known.

    `drain_end` is the Unix time at which the drain marker ends, None without a marker.
    """

    serving: tuple[Serving, ...]
    duration: float
    errors: Mapping[Reason, int]
    dropped: int
    drain_end: float | None = None
    version: str | None = None
    missing: tuple[Metric, ...] = ()
    unmapped: int | None = None


def status_text(status: Status) -> str:
    """Write a status as a page."""
    models = tuple((one.model, one.up) for one in status.serving)
    drain = () if status.drain_end is None else (status.drain_end,)
    template = _template(
        models, status.version or "", status.missing, is_draining=bool(drain), has_unmapped=status.unmapped is not None
    )
    return template.render(
        [
            *(float(one.up) for one in status.serving),
            *(value for one in status.serving for value in _IN_STATE[one.state]),
            *(float(bool(drain)) for _ in status.serving),
            *(end for end in drain for _ in status.serving),
            *(1.0 for one in status.serving if one.up),
            status.duration,
            *([float(status.errors.get(reason, 0)) for reason in _REASONS] if status.errors else _NO_ERRORS),
            *(1.0 for _ in status.missing),
            *(() if status.unmapped is None else (float(status.unmapped),)),
            float(status.dropped),
        ]
    )


@lru_cache(maxsize=512)
def _template(
    models: tuple[tuple[str, bool], ...],
    version: str,
    missing: tuple[Metric, ...],
    *,
    is_draining: bool,
    has_unmapped: bool,
) -> Template:
    """Write what does not change from scrape to scrape once; the order is that of the values in `status_text`."""
    of_models = _points_of_models(models, version, is_draining=is_draining)
    return Template([*of_models, *_points_of_replica(missing, has_unmapped=has_unmapped)])


def _points_of_models(models: tuple[tuple[str, bool], ...], version: str, *, is_draining: bool) -> Iterator[Point]:
    labels = [((catalogue.MODEL.name, model),) for model, _ in models]
    for model in labels:
        yield Point(metric=catalogue.REPLICA_UP, labels=model)
    for model in labels:
        for state in _STATES:
            yield Point(metric=catalogue.REPLICA_STATE, labels=(*model, (catalogue.STATE.name, state.value)))
    for metric in (catalogue.REPLICA_DRAINING, *([catalogue.DRAIN_EXPIRY] if is_draining else [])):
        for model in labels:
            yield Point(metric=metric, labels=model)
    for model, (_, up) in zip(labels, models, strict=True):
        if up:
            yield Point(metric=catalogue.REPLICA_INFO, labels=(*model, (catalogue.VERSION.name, version)))


def _points_of_replica(missing: tuple[Metric, ...], *, has_unmapped: bool) -> Iterator[Point]:
    yield Point(metric=catalogue.SCRAPE_DURATION)
    for reason in _REASONS:
        yield Point(metric=catalogue.SCRAPE_ERRORS, labels=((catalogue.SCRAPE_ERROR.name, reason.value),))
    for metric in missing:
        yield Point(metric=catalogue.MISSING_SERIES, labels=((catalogue.MISSING.name, metric.name),))
    if has_unmapped:
        yield Point(metric=catalogue.UNMAPPED_SERIES)
    yield Point(metric=catalogue.DROPPED_SAMPLES)
