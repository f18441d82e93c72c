"""The whole product on free ports, with compressed time. In, a directory and a time scale; out, its parts, running.

The command lines are the Procfile's and the configuration is what generate.py renders: a drill runs what people run.
"""

import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from drills.clients import Cards, Phone, Prometheus, Simulator
from drills.model import Drill
from drills.run import DrillFailedError, Parts
from exporter import catalogue, fleet
from generate import artefacts
from prometheus.deployment import LOCAL, Deployment
from prometheus.windows import TimeScale
from running import services, tools
from running.paths import ROOT
from running.ports import LOOPBACK, free_port
from running.services import Service
from simulator.fake_nvml import FakeNvml, uuid

if TYPE_CHECKING:
    from running.processes import Process

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
def started(directory: Path, drill: Drill, time_scale: int) -> Iterator[Parts]:
    """Start everything for the demo fleet as the drill wants it, wait until all is up, and stop it at the end.

    As many replicas as the drill has cards have one each, of which a fake driver tells.
    """
    ports = {service.name: free_port() for service in _ORDER if service.port}
    replicas = _write_demo_fleet(directory, drill)
    driver = FakeNvml.healthy(directory, drill.cards) if drill.cards else None
    _write_configuration(directory, ports, time_scale)
    settings = _settings(directory, ports) | (driver.environment if driver else {})
    with ExitStack() as stack:
        processes = {}
        for service in _ORDER:
            log = directory / "logs" / f"{service.name}.log"
            process = _Restartable(service, settings, ports.get(service.name), log)
            process.start()
            stack.callback(process.stop)
            processes[service.name] = process
        parts = Parts(
            prometheus=Prometheus(_url(ports["prometheus"])),
            simulator=Simulator(_url(ports["simulator"])),
            phone=Phone(_url(ports["phone"])),
            time_scale=time_scale,
            processes=processes,
            cards=Cards(driver) if driver else None,
        )
        _wait_until_up(parts.prometheus, replicas)
        yield parts


class _Restartable:
    """One process of the Procfile that a drill may kill and start again."""

    def __init__(self, service: Service, settings: Mapping[str, str], port: int | None, log: Path) -> None:
        self._start = partial(services.start, service, settings, port=port, log=log)
        self._process: Process | None = None

    def start(self) -> None:
        """Start it and wait until it serves."""
        self._process = self._start()

    def kill(self) -> None:
        """End it as the kernel would."""
        if self._process:
            self._process.signal(signal.SIGKILL)
            self._process.wait()

    def stop(self) -> None:
        """End it and what it has started, if it still runs."""
        if self._process:
            self._process.stop()


def _write_demo_fleet(directory: Path, drill: Drill) -> int:
    """Write copies of the demo's two files with ports that are free now; return the number of replicas."""
    demo: dict[str, Any] = yaml.safe_load(_DEMO.read_text(encoding="utf-8"))
    operators: dict[str, Any] = yaml.safe_load(_FLEET.read_text(encoding="utf-8"))
    for replica in demo["replicas"]:
        replica["port"] = free_port()
    ports = {replica["name"]: replica["port"] for replica in demo["replicas"]}
    operators["replicas"] = [
        entry | {"url": _url(ports[entry["name"]])} for entry in operators["replicas"] if entry["name"] in ports
    ]
    for index, entry in enumerate(operators["replicas"][: drill.cards]):
        entry["gpus"] = [uuid(index)]
    for slo, objective in drill.promised.items():
        operators["slos"]["default"][slo]["objective"] = objective
    for traffic in demo["load"]["models"].values():
        traffic["rate"] *= drill.load
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
