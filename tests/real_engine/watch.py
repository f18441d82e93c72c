"""Servewatch around a real engine: in, replicas of a fleet.yml; out, the exporter's pages and what Prometheus has."""

import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
import yaml

from exporter import catalogue
from running import ports
from running.errors import NotReadyError
from running.processes import Process
from running.services import start_prometheus
from running.tools import Tool

_POLL_SECONDS = 0.1
_STATE = re.compile(rf'^{catalogue.REPLICA_STATE.name}{{.*\bstate="(\w+)".*}} 1(?:\.0)?$', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """A running exporter."""

    process: Process
    url: str

    def page(self, replica: str) -> str:
        """Answer the normalised page of a replica."""
        response = requests.get(f"{self.url}/probe", {"target": replica}, timeout=30)
        response.raise_for_status()
        return response.text

    def state(self, replica: str) -> str:
        """Answer the one state that the replica is in."""
        [state] = _STATE.findall(self.page(replica))
        return str(state)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prometheus:
    """A running Prometheus that scrapes through the exporter."""

    process: Process
    url: str

    def value(self, expression: str) -> float | None:
        """Answer the value of an expression that has at most one; None where Prometheus has no sample."""
        answer = requests.get(f"{self.url}/api/v1/query", {"query": expression}, timeout=5).json()
        values = [float(item["value"][1]) for item in answer["data"]["result"]]
        assert len(values) <= 1, f"{expression} has {len(values)} series"
        return values[0] if values else None


def start_exporter(directory: Path, replicas: Sequence[Mapping[str, Any]]) -> Exporter:
    """Start the exporter on a fleet of these replicas and wait until it is ready."""
    fleet = directory / "fleet.yml"
    fleet.write_text(yaml.safe_dump({"replicas": [dict(replica) for replica in replicas]}))
    listen = f"127.0.0.1:{ports.free_port()}"
    serve = [sys.executable, "-m", "exporter", "serve", "--fleet", str(fleet), "--listen", listen]
    command = [*serve, "--min-interval", "100ms"]  # every poll of a test is to be a scrape
    process = Process.start("exporter", command, log=directory / "exporter.log")
    try:
        process.wait_ready(f"http://{listen}/-/ready")
    except BaseException:
        process.stop()
        raise
    return Exporter(process=process, url=f"http://{listen}")


def watch(exporter: Exporter, prometheus: Tool, directory: Path) -> Prometheus:
    """Start Prometheus with the exporter's service discovery as its only source of targets."""
    directory.mkdir()
    config = directory / "prometheus.yml"
    discovery = {"url": f"{exporter.url}/targets", "refresh_interval": "1s"}
    job = {"job_name": "replicas", "http_sd_configs": [discovery]}
    intervals = {"scrape_interval": "500ms", "scrape_timeout": "500ms"}
    config.write_text(yaml.safe_dump({"global": intervals, "scrape_configs": [job]}))
    port = ports.free_port()
    log = directory / "prometheus.log"
    process = start_prometheus(prometheus.path, config=config, data=directory / "data", port=port, log=log)
    return Prometheus(process=process, url=f"http://127.0.0.1:{port}")


def until(condition: Callable[[], bool], claim: str, *, seconds: float = 45) -> None:
    """Wait until a condition holds; `claim` completes "waited … s until" in the error."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise NotReadyError(f"waited {seconds:g} s until {claim}")
        time.sleep(_POLL_SECONDS)
