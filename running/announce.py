"""What a person reads once the product is up: addresses, what to try next, and how many replicas answer."""

import time
import urllib.parse
from collections.abc import Callable, Sequence
from pathlib import Path

from exporter.catalogue import REPLICA_UP
from running.loopback import answers, read_json
from running.paths import ROOT, RUN
from running.services import ALERTMANAGER, EXPORTER, PHONE, PROMETHEUS, SIMULATOR, Service

_ORDER = (PHONE, EXPORTER, PROMETHEUS, ALERTMANAGER, SIMULATOR)
_POLL_SECONDS = 0.2
_PATIENCE_SECONDS = 90


def announce(names: Sequence[str], replicas: int, run: Path) -> None:
    """Wait for every service, print the addresses, then wait for the replicas and say how many answer."""
    began, started = time.time(), time.monotonic()
    shown = tuple(service for service in _ORDER if service.name in names)
    _wait(lambda: all(answers(service.ready_url) for service in shown))
    if silent := [service.title for service in shown if not answers(service.ready_url)]:
        print(f"\n{', '.join(silent)} still does not answer; see {run / 'logs'}/\n", flush=True)
        return
    print(table(shown, time.monotonic() - started, run), flush=True)
    _wait(lambda: replicas_up(began) == replicas)
    print(
        f"\n{replicas_up(began)} of {replicas} replicas are up after {time.monotonic() - started:.0f} s\n", flush=True
    )


def table(shown: Sequence[Service], seconds: float, run: Path) -> str:
    """Answer the addresses as a table, with what to try next."""
    rows = [f"  {service.title:<14}{service.url:<24}{service.shows}" for service in shown]
    down = "make down" if run == RUN else f".venv/bin/python -m running down --run {run}"
    logs = run.relative_to(ROOT) if run.is_relative_to(ROOT) else run
    hints = [f"  stop          Ctrl-C here, or `{down}` elsewhere; logs are in {logs / 'logs'}/"]
    if SIMULATOR in shown:
        hints = [
            "  break         .venv/bin/python -m simulator break vllm-a kill",
            "  mend          .venv/bin/python -m simulator heal vllm-a",
            *hints,
        ]
    return "\n".join(["", f"Servewatch is up after {seconds:.0f} s.", "", *rows, "", *hints, ""])


def replicas_up(since: float) -> int:
    """Ask Prometheus how many replicas are up; samples before `since` (Unix time) are of an earlier run."""
    up = REPLICA_UP.name
    query = f"sum({up} * (timestamp({up}) >= bool {since:.0f}))"
    try:
        result = read_json(f"{PROMETHEUS.url}/api/v1/query?{urllib.parse.urlencode({'query': query})}")["data"][
            "result"
        ]
    except (OSError, ValueError):
        return 0
    return int(result[0]["value"][1]) if result else 0


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not condition() and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
