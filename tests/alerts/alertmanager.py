"""A real Alertmanager on the generated configuration."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import requests
import yaml

from alerts.render import artefacts
from exporter.fleet import Fleet
from exporter.oncall import Oncall
from prometheus.deployment import LOCAL, Deployment
from prometheus.windows import TimeScale
from running.ports import free_port
from running.processes import Process
from running.services import start_alertmanager
from running.tools import Tool

_FAILED = ("alertmanager_notifications_failed_total", "alertmanager_notification_requests_failed_total")


@dataclass(frozen=True, slots=True, kw_only=True)
class Alertmanager:
    """Its address, and what one does with it."""

    url: str
    process: Process

    def post(self, alerts: Sequence[dict[str, Any]]) -> None:
        """Send alerts as Prometheus does."""
        requests.post(f"{self.url}/api/v2/alerts", json=alerts, timeout=10).raise_for_status()

    def alerts(self) -> list[dict[str, Any]]:
        """Answer the alerts with their status."""
        found: list[dict[str, Any]] = requests.get(f"{self.url}/api/v2/alerts", timeout=10).json()
        return found

    def failures(self) -> list[str]:
        """Answer the counters of failed notifications, and of failed tries of them, that are not zero."""
        page = requests.get(f"{self.url}/metrics", timeout=10).text
        lines = [line for line in page.splitlines() if line.startswith(_FAILED)]
        return [line for line in lines if not line.endswith(" 0")]


def write_configuration(directory: Path, oncall: Oncall, *, pagerduty: str | None = None, scale: int = 60) -> Path:
    """Write the generated files; PagerDuty's own address is replaced, since nothing may leave this machine."""
    deployment = Deployment(addresses=replace(LOCAL, phone="127.0.0.1:9"), scale=TimeScale(factor=scale))
    for path, text in artefacts(Fleet(replicas=(), oncall=oncall), deployment).items():
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    config = directory / "alerts/generated/alertmanager.yml"
    if pagerduty:
        document = yaml.safe_load(config.read_text(encoding="utf-8"))
        document["global"] = {"pagerduty_url": pagerduty}
        config.write_text(yaml.safe_dump(document), encoding="utf-8")
    return config


@contextmanager
def running(binary: Tool, config: Path, directory: Path) -> Iterator[Alertmanager]:
    """Run Alertmanager with the product's flags."""
    port = free_port()
    log = directory / "alertmanager.log"
    with start_alertmanager(binary.path, config=config, data=directory / "data", port=port, log=log) as process:
        yield Alertmanager(url=f"http://127.0.0.1:{port}", process=process)
