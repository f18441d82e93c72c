"""A real Prometheus that scrapes what a test gives it, and answers queries."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
import yaml

from running.ports import free_port
from running.processes import Process
from running.tools import Tool


class Prometheus:
    """A running Prometheus; its address is http://host:port."""

    def __init__(self, address: str) -> None:
        self.address = address

    def query(self, promql: str) -> list[tuple[dict[str, str], float]]:
        """Answer an instant vector."""
        answer = requests.get(f"{self.address}/api/v1/query", params={"query": promql}, timeout=30).json()
        assert answer["status"] == "success", answer
        return [(one["metric"], float(one["value"][1])) for one in answer["data"]["result"]]

    def targets(self) -> list[dict[str, Any]]:
        """Answer the active targets with their health."""
        answer = requests.get(f"{self.address}/api/v1/targets", params={"state": "active"}, timeout=30).json()
        found: list[dict[str, Any]] = answer["data"]["activeTargets"]
        return found

    def wait_until(self, condition: Callable[["Prometheus"], bool], claim: str, seconds: float = 30) -> None:
        """Wait until a condition holds."""
        deadline = time.monotonic() + seconds
        while not condition(self):
            assert time.monotonic() < deadline, f"Prometheus did not {claim} within {seconds} s: {self.targets()}"
            time.sleep(0.1)


@contextmanager
def prometheus(
    tool: Tool, folder: Path, scrape_configs: list[Mapping[str, Any]], interval: str
) -> Iterator[Prometheus]:
    """Run a Prometheus until the block ends."""
    configuration = {
        "global": {"scrape_interval": interval, "scrape_timeout": interval},
        "scrape_configs": scrape_configs,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
    address = f"127.0.0.1:{free_port()}"
    command: list[str | Path] = [
        tool.path,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
        "--log.level=warn",
    ]
    with Process.start("prometheus", command, log=folder / "prometheus.log") as process:
        process.wait_ready(f"http://{address}/-/ready")
        yield Prometheus(f"http://{address}")
