"""The whole product on free ports, with compressed time. In, a directory and a time scale; out, its parts, running.

The command lines are the Procfile's and the configuration is what generate.py renders: a drill runs what people run.
"""

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from drills.clients import Cards, Phone, Prometheus, Simulator
from drills.run import DrillFailedError, Parts
from exporter import catalogue, fleet
from generate import artefacts
from prometheus.deployment import LOCAL, Deployment
from prometheus.windows import TimeScale
from running import services, tools
from running.paths import ROOT
from running.ports import LOOPBACK, free_port
from simulator.fake_nvml import FakeNvml, uuid

__all__ = ["started"]

_DEMO = ROOT / "simulator/demo.yml"
_FLEET = ROOT / "fleet.yml"
_ORDER = (
    *(services.SIMULATOR, services.EXPORTER, services.PHONE),
    *(services.ALERTMANAGER, services.PROMETHEUS, services.LOAD),
)
_UP_SECONDS = 60.0
_POLL_SECONDS = 0.1


@contextmanager
def started(directory: Path, time_scale: int, *, cards: int = 0) -> Iterator[Parts]:
    """Start everything for the demo fleet, wait until every replica is up, and stop it all at the end.

    With `cards`, so many of its replicas have a card each, of which a fake driver tells.
    """
    ports = {service.name: free_port() for service in _ORDER if service.port}
    replicas = _write_demo_fleet(directory, cards)
    driver = FakeNvml.healthy(directory, cards) if cards else None
    _write_configuration(directory, ports, time_scale)
    settings = _settings(directory, ports) | (driver.environment if driver else {})
    with ExitStack() as stack:
        for service in _ORDER:
            log = directory / "logs" / f"{service.name}.log"
            stack.enter_context(services.start(service, settings, port=ports.get(service.name), log=log))
        parts = Parts(
            prometheus=Prometheus(_url(ports["prometheus"])),
            simulator=Simulator(_url(ports["simulator"])),
            phone=Phone(_url(ports["phone"])),
            time_scale=time_scale,
            cards=Cards(driver) if driver else None,
        )
        _wait_until_up(parts.prometheus, replicas)
        yield parts


def _write_demo_fleet(directory: Path, cards: int) -> int:
    """Write copies of the demo's two files with ports that are free now; return the number of replicas."""
    demo: dict[str, Any] = yaml.safe_load(_DEMO.read_text(encoding="utf-8"))
    operators: dict[str, Any] = yaml.safe_load(_FLEET.read_text(encoding="utf-8"))
    for replica in demo["replicas"]:
        replica["port"] = free_port()
    ports = {replica["name"]: replica["port"] for replica in demo["replicas"]}
    operators["replicas"] = [
        entry | {"url": _url(ports[entry["name"]])} for entry in operators["replicas"] if entry["name"] in ports
    ]
    for index, entry in enumerate(operators["replicas"][:cards]):
        entry["gpus"] = [uuid(index)]
    (directory / "demo.yml").write_text(yaml.safe_dump(demo), encoding="utf-8")
    (directory / "fleet.yml").write_text(yaml.safe_dump(operators), encoding="utf-8")
    return len(ports)


def _write_configuration(directory: Path, ports: Mapping[str, int], time_scale: int) -> None:
    addresses = replace(LOCAL, **{name: f"{LOOPBACK}:{ports[name]}" for name in _ADDRESSED})
    deployment = Deployment(addresses=addresses, scale=TimeScale(factor=time_scale))
    for path, text in artefacts(fleet.load(directory / "fleet.yml"), deployment).items():
        file = directory / "generated" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


_ADDRESSED = ("exporter", "prometheus", "alertmanager", "phone")


def _settings(directory: Path, ports: Mapping[str, int]) -> dict[str, str]:
    """Answer the variables of the Procfile."""
    return {f"{name.upper()}_PORT": str(port) for name, port in ports.items()} | {
        "MIN_INTERVAL": "10ms",  # two scrapes are closer to each other here than the default allows
        "PYTHON": sys.executable,
        "RUN": str(directory),
        "FLEET": str(directory / "fleet.yml"),
        "SIMULATOR_CONFIG": str(directory / "demo.yml"),
        "PROMETHEUS": str(tools.find("prometheus")),
        "PROMETHEUS_CONFIG": str(directory / "generated/prometheus/generated/prometheus.yml"),
        "PROMETHEUS_DATA": str(directory / "prometheus"),
        "ALERTMANAGER": str(tools.find("alertmanager")),
        "ALERTMANAGER_CONFIG": str(directory / "generated/alerts/generated/alertmanager.yml"),
        "ALERTMANAGER_DATA": str(directory / "alertmanager"),
    }


def _url(port: int) -> str:
    return f"http://{LOOPBACK}:{port}"


def _wait_until_up(prometheus: Prometheus, replicas: int) -> None:
    """Wait until Prometheus has every replica as up and sees requests finish."""
    healthy = (
        f"count({catalogue.REPLICA_UP.name} == 1) == {replicas}",
        f"sum({catalogue.REQUESTS_FINISHED.name}) > 0",
    )
    deadline = time.monotonic() + _UP_SECONDS
    while not all(prometheus.query(expression) for expression in healthy):
        if time.monotonic() > deadline:
            raise DrillFailedError(f"not all {replicas} replicas were up with traffic within {_UP_SECONDS:g} s")
        time.sleep(_POLL_SECONDS)
