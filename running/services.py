"""The processes of the Procfile: in, a place for their data and the tools found; out, commands, settings and addresses.

The Procfile is the one place that spells a command line. `make up` starts it whole; drills and tests start single
processes from it, on other ports.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from honcho.environ import parse_procfile

from running.paths import PROCFILE
from running.ports import LOOPBACK
from running.processes import Process


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A process of the Procfile; `ready` is the path that answers 200 once it serves, None if it listens nowhere."""

    name: str
    title: str
    port: int | None = None
    ready: str | None = None
    shows: str = ""
    after: str | None = None
    """The service that must be ready before this one starts."""
    is_quiet: bool = False
    """Only its log shows what it says."""

    @property
    def url(self) -> str:
        """The address for a person."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def ready_url(self) -> str:
        """The address that answers 200 once the service serves."""
        return f"{self.url}{self.ready}"


PHONE = Service(name="phone", title="Phone", port=9803, ready="/-/healthy", shows="pages and tickets as they arrive")
EXPORTER = Service(name="exporter", title="Exporter", port=9801, ready="/-/ready", shows="replicas, their state, links")
# Its service discovery asks the exporter once and then only every so often: a failed first question costs time.
PROMETHEUS = Service(
    name="prometheus",
    title="Prometheus",
    port=9090,
    ready="/-/ready",
    shows="queries, rules, targets",
    after="exporter",
)
ALERTMANAGER = Service(name="alertmanager", title="Alertmanager", port=9093, ready="/-/ready", shows="alerts, silences")
SIMULATOR = Service(name="simulator", title="Simulator", port=9810, ready="/-/healthy", shows="the demo fleet, faults")
LOAD = Service(name="load", title="Load", after="simulator", is_quiet=True)

ALWAYS = (EXPORTER, PROMETHEUS, ALERTMANAGER)
DEMO_ONLY = (SIMULATOR, LOAD)


def commands() -> Mapping[str, str]:
    """Answer the shell command of each process in the Procfile."""
    processes: Mapping[str, str] = parse_procfile(PROCFILE.read_text()).processes
    return processes


def start_prometheus(binary: Path, *, config: Path, data: Path, port: int, log: Path) -> Process:
    """Start Prometheus with the product's flags and wait until it is ready."""
    settings = {
        "PROMETHEUS": str(binary),
        "PROMETHEUS_CONFIG": str(config),
        "PROMETHEUS_DATA": str(data),
        "PROMETHEUS_PORT": str(port),
    }
    return start(PROMETHEUS, settings, port=port, log=log)


def start_alertmanager(binary: Path, *, config: Path, data: Path, port: int, log: Path) -> Process:
    """Start Alertmanager with the product's flags and wait until it is ready."""
    settings = {
        "ALERTMANAGER": str(binary),
        "ALERTMANAGER_CONFIG": str(config),
        "ALERTMANAGER_DATA": str(data),
        "ALERTMANAGER_PORT": str(port),
    }
    return start(ALERTMANAGER, settings, port=port, log=log)


def start(service: Service, settings: Mapping[str, str], *, port: int | None, log: Path) -> Process:
    """Start a process of the Procfile with its variables, and wait until it serves, if it serves at all."""
    process = Process.start(service.name, ["/bin/sh", "-c", commands()[service.name]], log=log, environment=settings)
    try:
        return process.wait_ready(f"http://{LOOPBACK}:{port}{service.ready}") if service.ready else process
    except BaseException:
        process.stop()
        raise
