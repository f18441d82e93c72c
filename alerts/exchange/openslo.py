"""OpenSLO: objectives as OpenSLO v1 documents (https://github.com/OpenSLO/OpenSLO).

In: a `Fleet`. Out: one Service per model, one SLO per objective of it, as plain mappings. Good and total events are the
recorded rates, so a reader counts what our own alerts count. What OpenSLO has no place for stands in annotations:

    servewatch/slo, servewatch/threshold, servewatch/model      which objective, of which model
    servewatch/objectives: default                               fleet.yml says nothing of its own about the model
"""

from datetime import timedelta
from typing import Any

from alerts.exchange.promises import Promise, Service, services
from exporter.document import FleetError
from exporter.fleet import Fleet
from prometheus.indicators import Indicator
from prometheus.promql import Expr, number_text
from prometheus.windows import TILE, duration_text

__all__ = ["API_VERSION", "DEFAULT", "MODEL_NOTE", "OBJECTIVES_NOTE", "SLO_NOTE", "THRESHOLD_NOTE", "export"]

API_VERSION = "openslo/v1"
SLO_NOTE = "servewatch/slo"
MODEL_NOTE = "servewatch/model"
THRESHOLD_NOTE = "servewatch/threshold"
OBJECTIVES_NOTE = "servewatch/objectives"
DEFAULT = "default"

_LONGEST_TITLE = 63


def export(fleet: Fleet) -> list[dict[str, Any]]:
    """Build the documents; raises FleetError for a window that OpenSLO has no word for."""
    window = _window(fleet.slos.window)
    documents = []
    for service in services(fleet):
        documents.append(_service(service))
        documents += [_slo(service, promise, window) for promise in service.promises]
    return documents


def _window(window: timedelta) -> str:
    if window % timedelta(minutes=1):
        raise FleetError(
            f"slos.window: OpenSLO tells windows in whole minutes, got {duration_text(window)}; choose one such as 30d"
        )
    return duration_text(window)


def _service(service: Service) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "Service",
        "metadata": {"name": service.name, "displayName": service.title[:_LONGEST_TITLE]},
        "spec": {"description": f"LLM serving: {service.title}"},
    }


def _slo(service: Service, promise: Promise, window: str) -> dict[str, Any]:
    indicator = promise.indicator
    name = f"{service.name}-{indicator.slo}"
    return {
        "apiVersion": API_VERSION,
        "kind": "SLO",
        "metadata": {"name": name, "displayName": indicator.title, "annotations": _notes(service, promise)},
        "spec": {
            "description": _sentence(promise),
            "service": service.name,
            "indicator": {"metadata": {"name": name}, "spec": {"ratioMetric": _ratio(service, indicator)}},
            "timeWindow": [{"duration": window, "isRolling": True}],
            "budgetingMethod": "Occurrences",
            "objectives": [{"displayName": _sentence(promise), "target": promise.share}],
        },
    }


def _notes(service: Service, promise: Promise) -> dict[str, str]:
    return {
        SLO_NOTE: promise.indicator.slo,
        **({MODEL_NOTE: service.model} if service.model is not None else {}),
        **({THRESHOLD_NOTE: duration_text(promise.threshold)} if promise.threshold else {}),
        **({OBJECTIVES_NOTE: DEFAULT} if service.is_default else {}),
    }


def _sentence(promise: Promise) -> str:
    share = f"{number_text(promise.share * 100)}%"
    within = f" within {duration_text(promise.threshold)}" if promise.threshold else ""
    return f"{promise.indicator.title}: {share} of requests good{within}"


def _ratio(service: Service, indicator: Indicator) -> dict[str, Any]:
    return {
        "counter": False,  # requests per second, which go up and down
        "good": _source(service.select(indicator.good(TILE))),
        "total": _source(service.select(indicator.total(TILE))),
    }


def _source(query: Expr) -> dict[str, Any]:
    return {"metricSource": {"type": "Prometheus", "spec": {"query": str(query)}}}
