"""Scrape configuration: prometheus.yml as a document.

In: a `Deployment`. Out: a plain mapping, valid for Prometheus 2.42 and 3.16. Replicas come from the exporter's service
discovery with all their labels, so there is no relabelling here that could make two of them collide.
"""

from datetime import timedelta

from prometheus import own_rules
from prometheus.deployment import Deployment
from prometheus.windows import INTERVAL, TimeScale

__all__ = ["DISCOVERY_INTERVAL", "RULE_FILES", "scrape_config"]

DISCOVERY_INTERVAL = timedelta(seconds=10)
"""How soon a new line in fleet.yml becomes a target."""

RULE_FILES = ("rules/*.yml", "../../alerts/generated/rules/*.yml")
"""Generated ones, relative to prometheus.yml, so that the tree can be put anywhere as long as it stays together."""


def scrape_config(deployment: Deployment) -> dict[str, object]:
    """Build prometheus.yml."""
    addresses, scale = deployment.addresses, deployment.scale
    return {
        "global": {
            "scrape_interval": scale.text(INTERVAL),
            "scrape_timeout": scale.text(INTERVAL),
            "evaluation_interval": scale.text(INTERVAL),
        },
        "rule_files": [*RULE_FILES, own_rules.pattern(deployment.fleet_directory)],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [addresses.alertmanager]}]}]},
        "scrape_configs": [
            _discovered("replicas", f"http://{addresses.exporter}/targets", scale),
            _discovered("gpu", f"http://{addresses.exporter}/gpu/targets", scale),
            _static("exporter", addresses.exporter),
            _static("prometheus", addresses.prometheus),
            _static("alertmanager", addresses.alertmanager),
        ],
    }


def _discovered(job: str, url: str, scale: TimeScale) -> dict[str, object]:
    return {
        "job_name": job,
        "http_sd_configs": [{"url": url, "refresh_interval": scale.text(DISCOVERY_INTERVAL)}],
    }


def _static(job: str, address: str) -> dict[str, object]:
    return {"job_name": job, "static_configs": [{"targets": [address]}]}
