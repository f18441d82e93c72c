"""The product under Docker Compose: in, a copy of the checkout; out, its services, their addresses and their state."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import requests

from running.errors import BuildFailedError, NotReadyError
from running.paths import ROOT
from tests.compose.command import Compose

_NOT_CLONED = shutil.ignore_patterns(
    ".git", ".venv", ".tools", ".run", ".*_cache", ".hypothesis", "__pycache__", "tests"
)
CHECKED = ("exporter", "prometheus", "alertmanager", "simulator", "phone")  # those that have a health check
_POLL_SECONDS = 0.5


class Product:
    """One compose project with ports of its own, in a directory of its own, beside whatever else the daemon runs."""

    def __init__(self, compose: Compose, directory: Path, variables: Mapping[str, str]) -> None:
        self.directory = directory / "servewatch"
        shutil.copytree(ROOT, self.directory, ignore=_left_behind)
        self._compose = compose
        ports = ("EXPORTER", "PROMETHEUS", "ALERTMANAGER", "GRAFANA", "PHONE")
        self._environment = {
            **os.environ,
            **{f"{name}_PORT": "0" for name in ports},  # the daemon chooses
            "COMPOSE_PROJECT_NAME": f"servewatch-test-{os.getpid()}",
            **variables,
        }

    def compose(self, *arguments: str, seconds: float = 180) -> str:
        """Run a compose command in the project; raises BuildFailedError with what it said."""
        command = [*self._compose.command, *arguments]
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        if done.returncode:
            raise BuildFailedError(
                f"`{' '.join(command)}` ended with {done.returncode}:\n{(done.stdout + done.stderr)[-4000:]}"
            )
        return done.stdout

    def inspect(self, service: str) -> Mapping[str, Any]:
        """Answer what the daemon knows of the service's container."""
        container = self.compose("ps", "--all", "--quiet", service).strip()
        command = ["docker", "inspect", container]
        answer = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=True)
        found: Mapping[str, Any] = json.loads(answer.stdout)[0]
        return found

    def healthy(self, *services: str) -> bool:
        """Tell whether the health check of every one of these services passes."""
        return all(self.inspect(service)["State"]["Health"]["Status"] == "healthy" for service in services)

    def url(self, service: str, port: int) -> str:
        """Answer the address at which the host reaches a service."""
        return f"http://{self.compose('port', service, str(port)).strip()}"

    def json(self, service: str, port: int, path: str, **parameters: str) -> Any:  # noqa: ANN401 - JSON of any shape
        """GET a path of a service and answer the parsed JSON."""
        return requests.get(f"{self.url(service, port)}{path}", parameters, timeout=5).json()

    def reload(self, service: str, port: int) -> None:
        """Let a service read its configuration again, as a user would with curl."""
        answer = requests.post(f"{self.url(service, port)}/-/reload", timeout=5)
        assert answer.ok, answer.text

    def query(self, expression: str) -> dict[str, float]:
        """Ask Prometheus; answer the value per replica (or per empty name, where there is no such label)."""
        answer = self.json("prometheus", 9090, "/api/v1/query", query=expression)
        return {item["metric"].get("replica", ""): float(item["value"][1]) for item in answer["data"]["result"]}

    def wait_until(self, condition: Callable[[], bool], claim: str, *, seconds: float) -> None:
        """Wait until a condition holds; `claim` completes "waited … s until" in the error, which ends with the logs."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise NotReadyError(f"waited {seconds:g} s until {claim}\n{self.logs()}")
            time.sleep(_POLL_SECONDS)

    def logs(self) -> str:
        """Answer the last lines of every service."""
        return self.compose("logs", "--no-color", "--tail=15")


def _left_behind(directory: str, names: list[str]) -> set[str]:
    """Leave out what a user does not have after `git clone`: tools, data, caches, and whatever secrets lie here."""
    secrets = {name for name in names if name != "README.md"} if Path(directory) == ROOT / "secrets" else set()
    return secrets | _NOT_CLONED(directory, names)
