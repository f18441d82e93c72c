"""`make up` and `make down`: in, fleet.yml and the tools of the machine; out, the product in the foreground."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from exporter import fleet as fleets
from exporter.fleet import Fleet
from running import debian, leftovers, lock, ports, services, supervise, tools
from running.errors import FleetRefusedError, PortTakenError, RunningError, ToolMissingError
from running.paths import DEMO, ROOT
from running.services import Service
from simulator.config import load_fleet as load_demo

_STOP_SECONDS = supervise.GRACE_SECONDS + 7
_KEPT = timedelta(days=45)
_LOCAL = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is started for a fleet, and the ports that must be free for it."""

    services: tuple[Service, ...]
    ports: dict[int, str]


def up(fleet_file: Path, *, run: Path, time_scale: int) -> None:
    """Check everything, then run the product until it is asked to stop; raises RunningError."""
    with lock.held(run / "lock"):
        leftovers.kill(run)  # of an earlier run that was killed: nobody else can own them while we hold the lock
        fleet = _fleet(fleet_file)
        plan = plan_for(fleet)
        require_free(plan.ports)
        environment = _environment(fleet_file, run) | {
            "PROMETHEUS": str(_tool("prometheus")),
            "ALERTMANAGER": str(_tool("alertmanager")),
            "PROMETHEUS_RETENTION": os.environ.get("PROMETHEUS_RETENTION") or retention(fleet.slos.window),
        }
        _generate(fleet_file, run / "generated", time_scale)
        commands = services.commands()
        with _announcement(plan, len(fleet.replicas), run):
            supervise.foreground(
                {service.name: _command(service, commands[service.name]) for service in plan.services},
                environment,
                run=run,
                quiet=[service.name for service in plan.services if service.is_quiet],
            )
        print("stopped")


def down(run: Path) -> str:
    """Stop a `make up` that runs elsewhere, and whatever an earlier one left; answers what was done."""
    holder = lock.holder(run / "lock")
    if holder is None:
        left = leftovers.kill(run)
        return f"ended {left} processes that an earlier `make up` had left" if left else "nothing is up"
    _terminate(holder)
    # A launcher that was killed stops nothing, and honcho's children hold its lock until theirs have ended.
    _wait(lambda: lock.holder(run / "lock") is None or not _is_alive(holder))
    leftovers.kill(run)
    _wait(lambda: lock.holder(run / "lock") is None)
    return f"stopped (pid {holder})"


def plan_for(fleet: Fleet) -> Plan:
    """Decide what runs: the simulator and its load only for a fleet that names one of the simulator's addresses."""
    demo_ports = {replica.port: replica.name for replica in load_demo(DEMO).replicas}
    addresses = (urlsplit(replica.url) for replica in fleet.replicas)
    is_demo = any(url.hostname in _LOCAL and url.port in demo_ports for url in addresses)
    chosen = [*services.ALWAYS]
    if is_demo:
        chosen += services.DEMO_ONLY
    if is_demo or fleet.oncall.is_empty:
        chosen.append(services.PHONE)
    needed = {service.port: service.title for service in chosen if service.port}
    if is_demo:
        needed |= {port: f"the simulator's {name}" for port, name in demo_ports.items()}
    return Plan(services=tuple(chosen), ports=needed)


def retention(window: timedelta) -> str:
    """Answer how long Prometheus keeps samples: longer than the SLO window, or the budget forgets its beginning."""
    return f"{max(_KEPT, window + _KEPT / 3) // timedelta(days=1)}d"


def require_free(needed: dict[int, str]) -> None:
    """Refuse ports that are taken, all at once; raises PortTakenError, which names who holds each."""
    taken = [port for port in needed if not ports.is_free(port)]
    if taken:
        raise PortTakenError("\n".join(_taken(port, needed[port]) for port in sorted(taken)))


def _taken(port: int, use: str) -> str:
    holder = ports.holder(port)
    who = f"is taken by {holder}" if holder else "is taken by a process of another user"
    way_out = f"stop it (kill {holder.pid})" if holder else f"stop it (`ss -ltnp 'sport = :{port}'` as root names it)"
    return f"port {port} ({use}) {who}; {way_out}, or, if it is a service: `docker compose down`, `systemctl stop NAME`"


def _fleet(path: Path) -> Fleet:
    try:
        return fleets.load(path)
    except fleets.FleetError as error:
        raise FleetRefusedError(str(error)) from error


def _tool(name: str) -> Path:
    try:
        return tools.find(name)
    except ToolMissingError:
        if not debian.is_at_hand():
            raise
    debian.unpack()
    return tools.find(name)


def _generate(fleet_file: Path, directory: Path, time_scale: int) -> None:
    shutil.rmtree(directory, ignore_errors=True)  # rules of an earlier fleet must not be read
    out = ["--out", str(directory), "--local", "--time-scale", str(time_scale)]
    command = [sys.executable, "generate.py", "--fleet", str(fleet_file), *out]
    generated = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if generated.returncode:
        raise FleetRefusedError(f"the rules of {fleet_file} cannot be generated:\n{generated.stderr.strip()}")
    print(generated.stderr, end="", flush=True)  # what nobody is told of, and warnings about the operator's own rules


def _environment(fleet_file: Path, run: Path) -> dict[str, str]:
    addresses = {f"{service.name.upper()}_PORT": str(service.port) for service in _all_services() if service.port}
    return addresses | {
        "PYTHON": sys.executable,
        "PYTHONUNBUFFERED": "1",
        "RUN": str(run),
        "FLEET": str(fleet_file),
        "PROMETHEUS_CONFIG": str(run / "generated/prometheus/generated/prometheus.yml"),
        "PROMETHEUS_DATA": str(run / "prometheus"),
        "ALERTMANAGER_CONFIG": str(run / "generated/alerts/generated/alertmanager.yml"),
        "ALERTMANAGER_DATA": str(run / "alertmanager"),
    }


def _all_services() -> tuple[Service, ...]:
    return (*services.ALWAYS, *services.DEMO_ONLY, services.PHONE)


def _command(service: Service, command: str) -> str:
    first = next((other for other in _all_services() if other.name == service.after), None)
    return f'"$PYTHON" -m running await {first.ready_url} && {command}' if first else command


@contextmanager
def _announcement(plan: Plan, replicas: int, run: Path) -> Iterator[None]:
    """Print the addresses once everything answers, from a process beside honcho, whose loop takes the whole of ours."""
    names = [service.name for service in plan.services]
    command = [sys.executable, "-m", "running", "announce", "--replicas", str(replicas), "--run", str(run), *names]
    announcer = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **leftovers.mark(run)})
    try:
        yield
    finally:
        announcer.terminate()
        announcer.wait()


def _terminate(process: int) -> None:
    try:
        os.kill(process, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise RunningError(f"pid {process} belongs to another user: stop it as that user, or as root") from error


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _STOP_SECONDS
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
