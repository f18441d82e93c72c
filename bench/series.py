"""Series that Prometheus stores for a replica, raw and through us, and what 1,000 replicas cost it either way.

In: nothing but this machine. Out: a table for every Prometheus found: series of one replica, Prometheus' memory and
CPU with 1,000 replicas. One way after the other, each with a fresh Prometheus that scrapes every 10 s.
"""

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.rig.subjects import Prometheus, Upstream, exporter, prometheus, upstream
from bench.rig.table import progress, table
from running.tools import Tool, all_versions, missing

_INTERVAL_SECONDS = 10
_OWN = 'count({job="replicas",__name__!~"up|scrape_.+"})'


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figures:
    """What one way costs Prometheus; `cpu` in percent of a core, `memory` in MiB resident."""

    series: float
    memory: float
    cpu: float
    per_scrape: float


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    options = _parser().parse_args(arguments)
    tools = all_versions("prometheus")
    if not tools:
        sys.exit(missing("prometheus"))
    for tool in tools:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            replicas = stack.enter_context(upstream(Path(folder), options.replicas))
            raw = _raw(tool, Path(folder) / "raw", replicas, options.seconds)
            ours = _ours(tool, Path(folder) / "ours", replicas, options.seconds)
            print(_report(tool, options.replicas, raw, ours))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.series", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--replicas", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=60.0, help="time to measure each way (default: %(default)s)")
    return parser


def _raw(tool: Tool, folder: Path, replicas: Upstream, seconds: float) -> _Figures:
    """Let Prometheus scrape the replicas themselves."""
    folder.mkdir()
    with prometheus(tool, folder, f"{_INTERVAL_SECONDS}s") as server:
        server.scrape([f"127.0.0.1:{port}" for port in replicas.ports])
        return _figures(f"{tool}, raw pages", server, replicas, seconds)


def _ours(tool: Tool, folder: Path, replicas: Upstream, seconds: float) -> _Figures:
    """Let Prometheus scrape through the exporter, found by its service discovery."""
    folder.mkdir()
    with exporter(folder, replicas.ports) as subject:
        discovery = {"http_sd_configs": [{"url": f"http://127.0.0.1:{subject.port}/targets"}]}
        with prometheus(tool, folder, f"{_INTERVAL_SECONDS}s", discovery) as server:
            return _figures(f"{tool}, through Servewatch", server, replicas, seconds)


def _figures(what: str, server: Prometheus, replicas: Upstream, seconds: float) -> _Figures:
    progress(f"{what}: first scrapes")
    before = replicas.served()
    server.process.wait_until(
        lambda: replicas.served() - before >= 2 * len(replicas.ports),
        "scrape every replica twice",
        seconds=10 * _INTERVAL_SECONDS,
    )
    progress(f"{what}: {seconds:.0f} s")
    cpu, start, served = server.use.cpu, time.monotonic(), replicas.served()
    time.sleep(seconds)
    used, took, scrapes = server.use.cpu - cpu, time.monotonic() - start, replicas.served() - served
    memory = server.use.mebibytes
    return _Figures(
        series=server.query(_OWN) / len(replicas.ports),
        memory=memory,
        cpu=100 * used / took,
        per_scrape=1000 * used / scrapes,
    )


def _report(tool: Tool, replicas: int, raw: _Figures, ours: _Figures) -> str:
    rows = [
        (what, f"{one:.{digits}f}", f"{other:.{digits}f}", f"{other / one:.2f}")
        for what, digits, one, other in (
            ("series stored per replica", 0, raw.series, ours.series),
            (f"Prometheus' memory with {replicas} replicas, MiB", 0, raw.memory, ours.memory),
            (f"Prometheus' CPU with {replicas} replicas, % of a core", 1, raw.cpu, ours.cpu),
            ("the same per scrape, ms", 2, raw.per_scrape, ours.per_scrape),
        )
    ]
    title = f"{tool}, scraping vLLM 0.32.0 under load every {_INTERVAL_SECONDS} s"
    return table(title, ("what", "raw", "through Servewatch", "ratio"), rows)


if __name__ == "__main__":
    sys.exit(main())
