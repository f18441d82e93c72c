"""Sloth: objectives as specifications for Sloth (https://sloth.dev), which writes rules of its own from them.

In: a `Fleet`. Out: one specification per model, as plain mappings. Events are the recorded rates over Sloth's windows,
which are ours too, so its rules cost a look-up each.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from alerts.catalogue import ALERTS
from alerts.exchange.promises import Promise, Service, services
from alerts.model import Severity
from exporter.document import FleetError
from exporter.fleet import Fleet
from prometheus.indicators import Indicator
from prometheus.series import Recorded
from prometheus.windows import TILE, duration_text

__all__ = ["VERSION", "export"]

VERSION = "prometheus/v1"
_WINDOW = "{{.window}}"
_KNOWN = (timedelta(days=28), timedelta(days=30))


def export(fleet: Fleet) -> list[dict[str, Any]]:
    """Build the specifications; raises FleetError for a window that Sloth does not know."""
    if fleet.slos.window not in _KNOWN:
        known = " and ".join(map(duration_text, _KNOWN))
        raise FleetError(
            f"slos.window: Sloth knows {known}, got {duration_text(fleet.slos.window)}; choose one of them"
        )
    return [_spec(service) for service in services(fleet)]


def _spec(service: Service) -> dict[str, Any]:
    return {
        "version": VERSION,
        "service": service.name,
        "slos": [_slo(service, promise) for promise in service.promises],
    }


def _slo(service: Service, promise: Promise) -> dict[str, Any]:
    indicator = promise.indicator
    within = f" within {duration_text(promise.threshold)}" if promise.threshold else ""
    total = service.select(_over_window(indicator.total(TILE)))
    good = service.select(_over_window(indicator.good(TILE)))
    return {
        "name": indicator.slo,
        "objective": promise.share * 100,
        "description": f"{service.title}: {indicator.title}{within}",
        "sli": {"events": {"error_query": str(total - good), "total_query": str(total)}},
        "alerting": {
            "name": _alert(indicator),
            "page_alert": {"labels": {"severity": Severity.PAGE.value}},
            "ticket_alert": {"labels": {"severity": Severity.TICKET.value}},
        },
    }


def _over_window(recorded: Recorded) -> Recorded:
    """Leave the window in the series' name to Sloth."""
    return replace(recorded, name=recorded.name.removesuffix(TILE.name) + _WINDOW)


def _alert(indicator: Indicator) -> str:
    """Name the alert as ours about the same indicator."""
    return next(alert.name for alert in ALERTS if alert.indicator is indicator)
