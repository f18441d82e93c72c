"""Telemetry: what the exporter says about itself and its configuration, as the page of /metrics."""

from collections import Counter as Tally
from collections.abc import Iterable, Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from exporter import __version__, catalogue
from exporter.catalogue import Metric
from exporter.expose import Point, page
from exporter.fleet import Fleet

__all__ = ["Telemetry", "configuration"]


class Telemetry:
    """The exporter's own metrics."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        info = _gauge(catalogue.EXPORTER_BUILD_INFO, registry)
        info.labels(__version__).set(1)
        self.reload_success = _gauge(catalogue.FLEET_RELOAD_SUCCESS, registry)
        self.reload_time = _gauge(catalogue.FLEET_RELOAD_TIME, registry)
        self.probes = Counter(catalogue.PROBES.name, catalogue.PROBES.help, registry=registry)
        self.in_flight = 0
        _gauge(catalogue.PROBES_IN_FLIGHT, registry).set_function(lambda: self.in_flight)
        scrapes = catalogue.SCRAPES_SECONDS
        self.scrapes = Histogram(scrapes.name, scrapes.help, buckets=scrapes.buckets, registry=registry)

    def page(self, fleet: Fleet, models: Iterable[str]) -> str:
        """Write the page; `models` has the model of each replica, empty where it is not known."""
        return page(configuration(fleet, models)) + generate_latest(self._registry).decode()


def configuration(fleet: Fleet, models: Iterable[str]) -> Iterator[tuple[Point, float]]:
    """Answer fleet.yml as samples, for every model that is configured or known."""
    replicas = Tally(models)
    served = sorted({*fleet.slos.models, *fleet.models, *replicas} - {""})
    for model in served:
        of = fleet.slos.of(model)
        for slo in catalogue.SLO.values:
            yield _point(catalogue.SLO_OBJECTIVE, model=model, slo=slo), float(getattr(of, slo).objective)
    for model in served:
        of = fleet.slos.of(model)
        for slo, latency in (("ttft", of.ttft), ("itl", of.itl)):
            yield _point(catalogue.SLO_THRESHOLD, model=model, slo=slo), latency.threshold.total_seconds()
    yield Point(metric=catalogue.SPARE_REPLICAS), float(fleet.spare_replicas)
    for model, count in sorted(replicas.items()):
        yield _point(catalogue.FLEET_REPLICAS, model=model), float(count)


def _point(metric: Metric, **labels: str) -> Point:
    return Point(metric=metric, labels=tuple(labels.items()))


def _gauge(metric: Metric, registry: CollectorRegistry) -> Gauge:
    return Gauge(metric.name, metric.help, [label.name for label in metric.labels], registry=registry)
