"""What is measured, as processes of their own: the replicas' side, the exporter, a real Prometheus."""

import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

from bench.rig.process import Use, use
from running.ports import free_port
from running.processes import Process
from running.tools import Tool

__all__ = ["Exporter", "Prometheus", "Upstream", "exporter", "pinned", "prometheus", "upstream"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """The replicas: a port each."""

    ports: tuple[int, ...]

    def served(self) -> int:
        """Answer how many pages were asked for until now."""
        return int(_read(f"http://127.0.0.1:{self.ports[0]}/served"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """An exporter that watches replicas."""

    process: Process
    port: int
    names: tuple[str, ...]

    @property
    def use(self) -> Use:
        """What it has used until now."""
        return use(self.process.pid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prometheus:
    """A real Prometheus; it scrapes what it is given, while it is not frozen."""

    process: Process
    address: str
    targets_file: Path

    @property
    def use(self) -> Use:
        """What it has used until now."""
        return use(self.process.pid)

    def scrape(self, addresses: Sequence[str]) -> None:
        """Scrape these targets from now on."""
        draft = self.targets_file.with_suffix(".new")
        draft.write_text(json.dumps([{"targets": list(addresses)}]), encoding="utf-8")
        draft.replace(self.targets_file)

    def freeze(self) -> None:
        """Stop it from doing anything, so that others are measured alone."""
        self.process.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.process.signal(signal.SIGCONT)

    def query(self, promql: str) -> float:
        """Answer the one value of an expression."""
        found = json.loads(_read(f"{self.address}/api/v1/query?{urlencode({'query': promql})}"))["data"]["result"]
        return float(found[0]["value"][1]) if found else 0.0


@contextmanager
def upstream(folder: Path, replicas: int) -> Iterator[Upstream]:
    """Run so many replicas until the block ends."""
    log = folder / "upstream.log"
    command = [sys.executable, "-m", "bench.rig.upstream", "--replicas", str(replicas)]
    with Process.start("upstream", command, log=log) as process:
        process.wait_until(lambda: log.read_text().endswith("]\n"), "listen")
        yield Upstream(ports=tuple(json.loads(log.read_text())))


@contextmanager
def exporter(folder: Path, ports: Sequence[int]) -> Iterator[Exporter]:
    """Run an exporter that watches a replica on each port, and scrapes whenever it is asked."""
    name = f"exporter-{len(ports)}"
    fleet = folder / f"{name}.yml"
    names = tuple(f"replica-{at}" for at in range(len(ports)))
    # An engine that is learned becomes a target label, and the same series would be stored without and with it.
    lines = [
        f"  - {{name: {one}, url: 'http://127.0.0.1:{port}', engine: vllm}}"
        for one, port in zip(names, ports, strict=True)
    ]
    fleet.write_text("\n".join(["replicas:", *lines, ""]), encoding="utf-8")
    port = free_port()
    listen = f"127.0.0.1:{port}"
    serve = [sys.executable, "-m", "exporter", "serve", "--fleet", str(fleet), "--listen", listen]
    command = [*serve, "--min-interval", "0s"]  # every probe is to be a scrape
    with Process.start(name, command, log=folder / f"{name}.log") as process:
        process.wait_ready(f"http://{listen}/-/ready")
        yield Exporter(process=process, port=port, names=names)


@contextmanager
def prometheus(tool: Tool, folder: Path, interval: str, job: dict[str, Any] | None = None) -> Iterator[Prometheus]:
    """Run a Prometheus without targets; `job` replaces where it finds them."""
    name = f"prometheus-{tool.version}"
    place = folder / name
    place.mkdir()
    targets = place / "targets.json"
    targets.write_text("[]", encoding="utf-8")
    found = job or {"file_sd_configs": [{"files": [str(targets)]}]}
    configuration = {
        "global": {"scrape_interval": interval, "scrape_timeout": interval},
        "scrape_configs": [{"job_name": "replicas", **found}],
    }
    (place / "prometheus.yml").write_text(json.dumps(configuration), encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    command: list[str | Path] = [
        tool.path,
        f"--config.file={place / 'prometheus.yml'}",
        f"--storage.tsdb.path={place / 'data'}",
        f"--web.listen-address={address}",
        "--log.level=warn",
    ]
    with Process.start(name, command, log=place / "log") as process:
        process.wait_ready(f"http://{address}/-/ready")
        yield Prometheus(process=process, address=f"http://{address}", targets_file=targets)


def pinned(pid: int, core: int) -> None:
    """Keep a process on one core, threads that it starts later too."""
    for task in (Path("/proc") / str(pid) / "task").iterdir():
        os.sched_setaffinity(int(task.name), {core})


def _read(url: str) -> str:
    with urlopen(url, timeout=30) as answer:  # noqa: S310 - our own http address
        text: str = answer.read().decode()
    return text
