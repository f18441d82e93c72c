"""Scrape configuration: prometheus.yml as a document.

In: a `Deployment`. Out: a plain mapping, valid for Prometheus 2.42 and 3.16. Replicas come from the exporter's service
discovery with all their labels, so there is no relabelling here that could make two of them collide.
"""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta

from exporter.access import Access
from prometheus import own_rules
from prometheus.deployment import Deployment
from prometheus.windows import INTERVAL, TimeScale

__all__ = ["DISCOVERY_INTERVAL", "RULE_FILES", "scrape_config"]

DISCOVERY_INTERVAL = timedelta(seconds=10)
"""How soon a new line in fleet.yml becomes a target."""

RULE_FILES = ("rules/*.yml", "../../alerts/generated/rules/*.yml")
"""Generated ones, relative to prometheus.yml, so that the tree can be put anywhere as long as it stays together."""


def scrape_config(deployment: Deployment, access: Access) -> dict[str, object]:
    """Build prometheus.yml; `access` says where the exporters are and what they want to see."""
    addresses, scale = deployment.addresses, deployment.scale
    exporters = access.addresses or (addresses.exporter,)
    return {
        "global": {
            "scrape_interval": scale.text(INTERVAL),
            "scrape_timeout": scale.text(INTERVAL),
            "evaluation_interval": scale.text(INTERVAL),
        },
        "rule_files": [*RULE_FILES, own_rules.pattern(deployment.fleet_directory)],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [addresses.alertmanager]}]}]},
        "scrape_configs": [
            _discovered("replicas", exporters, "/targets", access, scale),
            _discovered("gpu", exporters, "/gpu/targets", access, scale),
            {**_static("exporter", *exporters), **_scheme(access), **_credentials(access)},
            _static("prometheus", addresses.prometheus),
            _static("alertmanager", addresses.alertmanager),
        ],
    }


def _discovered(job: str, exporters: Sequence[str], path: str, access: Access, scale: TimeScale) -> dict[str, object]:
    scheme = _scheme(access).get("scheme", "http")
    interval = scale.text(DISCOVERY_INTERVAL)
    return {
        "job_name": job,
        "http_sd_configs": [
            {"url": f"{scheme}://{exporter}{path}", "refresh_interval": interval, **_credentials(access)}
            for exporter in exporters
        ],
        **_credentials(access),
    }


def _static(job: str, *addresses: str) -> dict[str, object]:
    return {"job_name": job, "static_configs": [{"targets": list(addresses)}]}


def _scheme(access: Access) -> dict[str, str]:
    return {"scheme": "https"} if access.tls is not None else {}


def _credentials(access: Access) -> dict[str, object]:
    """Say who Prometheus is and whom it trusts; the same for discovery and for scrapes. Secrets stay in their files."""
    credentials: dict[str, object] = {}
    if access.tls is not None:
        credentials["tls_config"] = {key: str(file) for key, file in asdict(access.tls).items() if file is not None}
    if access.basic_auth is not None:
        credentials["basic_auth"] = {key: str(value) for key, value in asdict(access.basic_auth).items()}
    return credentials
