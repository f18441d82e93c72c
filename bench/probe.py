"""CPU of one probe, all in, beside what Prometheus spends on the raw page and prometheus_client on parsing it.

In: nothing but this machine. Out: a table; exit status 1 if a probe costs more than Prometheus' own scrape, or more
than a fifth of parsing. What is measured takes turns, so that a busy machine is busy for all of them.

Ours: the exporter's process under a steady reader, HTTP on both sides; the replicas are another process.
Prometheus: its process while it scrapes the replicas themselves, as often, less what it uses without targets.
prometheus_client: its parser alone, no HTTP.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from prometheus_client.parser import text_string_to_metric_families

from bench.rig.client import probe_at_rate, probe_times
from bench.rig.pages import CAPTURED
from bench.rig.subjects import Exporter, Prometheus, Upstream, exporter, prometheus, upstream
from bench.rig.table import progress, spread, table
from running.tools import all_versions, missing

_OURS = "Servewatch, a probe"
_PARSER = "prometheus_client, parsing alone"
_REPLICAS = 1000
_INTERVAL_SECONDS = 5  # of Prometheus; the reader of ours asks as often
_RATE = _REPLICAS / _INTERVAL_SECONDS
_SETTLE_SECONDS = 2.0
_PARSES = 30
_SHARE_OF_PARSER = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scraping:
    """A Prometheus, and the share of a core that it uses without targets."""

    server: Prometheus
    idle: float


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and answer the exit status."""
    options = _parser().parse_args(arguments)
    tools = all_versions("prometheus")
    if not tools:
        sys.exit(missing("prometheus"))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        replicas = stack.enter_context(upstream(folder, _REPLICAS))
        ours = stack.enter_context(exporter(folder, replicas.ports))
        asyncio.run(probe_times(ours.port, ours.names, times=2 * _REPLICAS, connections=2))
        turns: dict[str, Callable[[], float]] = {_OURS: lambda: _ours(ours, options.seconds)}
        for tool in tools:
            progress(f"{tool}: starting, and its use without targets")
            scraping = _started(stack.enter_context(prometheus(tool, folder, f"{_INTERVAL_SECONDS}s")), replicas)
            turns[f"{tool}, a scrape of the raw page"] = _turn_of(scraping, replicas, options.seconds)
        turns[_PARSER] = _parsing
        figures = _take_turns(turns, options.rounds)
    print(_report(figures))
    return int(_missed(figures))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.probe", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="turns of each (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of a turn (default: %(default)s)")
    return parser


def _take_turns(turns: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    figures: dict[str, list[float]] = {name: [] for name in turns}
    for number in range(1, rounds + 1):
        for name, turn in turns.items():
            progress(f"round {number} of {rounds}: {name}")
            figures[name].append(turn())
    return figures


def _ours(subject: Exporter, seconds: float) -> float:
    """Answer milliseconds of CPU per probe, after as long a start as Prometheus has."""
    asyncio.run(probe_at_rate(subject.port, subject.names, rate=_RATE, seconds=_SETTLE_SECONDS))
    before = subject.use.cpu
    probes = asyncio.run(probe_at_rate(subject.port, subject.names, rate=_RATE, seconds=seconds))
    return 1000 * (subject.use.cpu - before) / probes


def _started(server: Prometheus, replicas: Upstream) -> _Scraping:
    """Measure a Prometheus without targets, then give it targets and freeze it."""
    time.sleep(_SETTLE_SECONDS)
    before, start = server.use.cpu, time.monotonic()
    time.sleep(2 * _SETTLE_SECONDS)
    idle = (server.use.cpu - before) / (time.monotonic() - start)
    already = replicas.served()
    server.scrape([f"127.0.0.1:{port}" for port in replicas.ports])
    server.process.wait_until(lambda: replicas.served() > already + 3 * _REPLICAS, "scrape")
    server.freeze()
    return _Scraping(server=server, idle=idle)


def _turn_of(scraping: _Scraping, replicas: Upstream, seconds: float) -> Callable[[], float]:
    def turn() -> float:
        server = scraping.server
        server.thaw()
        time.sleep(_SETTLE_SECONDS)  # scrapes that became due while it was frozen come all at once
        cpu, start, served = server.use.cpu, time.monotonic(), replicas.served()
        time.sleep(seconds)
        used = server.use.cpu - cpu - scraping.idle * (time.monotonic() - start)
        scrapes = replicas.served() - served
        server.freeze()
        return 1000 * used / scrapes

    return turn


def _parsing() -> float:
    """Answer milliseconds of CPU for prometheus_client to parse the page once."""
    page = CAPTURED.read_text(encoding="utf-8")
    start = time.process_time()
    for _ in range(_PARSES):
        for _family in text_string_to_metric_families(page):
            pass
    return 1000 * (time.process_time() - start) / _PARSES


def _report(figures: Mapping[str, list[float]]) -> str:
    ours = median(figures[_OURS])
    rows = [(name, *spread(each), f"{ours / median(each):.2f}") for name, each in figures.items()]
    page = CAPTURED.read_bytes()
    title = f"CPU, milliseconds; vLLM 0.32.0 under load, {len(page.splitlines())} lines, {len(page)} bytes; "
    title += f"{_REPLICAS} replicas, {_RATE:.0f} scrapes a second"
    return table(title, ("what", "median", "from, to", "ours / this"), rows)


def _missed(figures: Mapping[str, list[float]]) -> bool:
    """Tell whether a goal was missed."""
    ours = median(figures[_OURS])
    scrapes = [median(each) for name, each in figures.items() if name not in {_OURS, _PARSER}]
    return ours > min(scrapes) or ours > _SHARE_OF_PARSER * median(figures[_PARSER])


if __name__ == "__main__":
    sys.exit(main())
