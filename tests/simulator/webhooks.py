"""Alertmanager's webhook bodies, version 4, as it sends them."""

from datetime import UTC, datetime, timedelta
from typing import Any

Json = Any  # any part of a body
BEGAN = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def stamp(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def alert(name: str = "LLMModelDown", status: str = "firing", **changes: Json) -> dict[str, Any]:
    ends = BEGAN + timedelta(minutes=3, seconds=20)
    return {
        "status": status,
        "labels": {"alertname": name, "model": "qwen3-8b", "severity": "page"},
        "annotations": {"summary": f"{name} says so", "description": "0 of 2 replicas answer."},
        "startsAt": stamp(BEGAN),
        "endsAt": stamp(ends) if status == "resolved" else "0001-01-01T00:00:00Z",
        "generatorURL": "http://127.0.0.1:9090/graph",
        "fingerprint": f"f-{name}",
        **changes,
    }


def notification(*alerts: dict[str, Any], group: str = "{}:{alertname}") -> dict[str, Any]:
    return {
        "version": "4",
        "groupKey": group,
        "truncatedAlerts": 0,
        "status": "firing",
        "receiver": "page",
        "groupLabels": {},
        "commonLabels": {},
        "commonAnnotations": {},
        "externalURL": "http://127.0.0.1:9093",
        "alerts": list(alerts),
    }
