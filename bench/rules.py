"""Cost of every rule for 1,000 replicas and 20 models on a live Prometheus: the share of a core that evaluation takes.

In: nothing but this machine. Out: per version of Prometheus a table of groups; exit status 1 if rules fail or take more
than 5 % of their intervals on one core. Counters and recorded rates have a past as long as rules look back. Nothing is
wrong with the fleet: alerts that fire cost more.

What a group takes is by the clock, as Prometheus measures it: on a busy machine it waits for others. Beside it stands
CPU time: of the process with rules, less what it uses for the same scrapes without them, before and after. That has the
garbage that rules leave behind in it, and differs by a percent of a core from run to run.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import requests

from bench.rig.process import use
from bench.rig.table import progress, table
from bench.ruleload.fleet import fleet
from bench.ruleload.pages import past_counters, past_tiles
from bench.ruleload.server import INSTANCE
from drills.backtest.engine import backfill
from exporter.catalogue import TTFT
from exporter.fleet import Fleet
from generate import artefacts
from prometheus.deployment import LOCAL, Deployment
from running.ports import LOOPBACK, free_port
from running.processes import Process
from running.tools import Tool, all_versions, missing

_GOAL = 0.05
_PAST_SECONDS = 3900
_SCRAPE_SECONDS = 10
_POLL_SECONDS = 10.0
_SETTLE_SECONDS = 60.0
_EACH_GROUP_SECONDS = 130.0
"""After which every group was evaluated once, the slowest too."""
_NO_RULES = "groups: []\n"
_CONFIG = "prometheus/generated/prometheus.yml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What was seen of each group of rules, in seconds per evaluation, and of Prometheus as a whole."""

    rules: Mapping[str, int]
    intervals: Mapping[str, float]
    seconds: Mapping[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failing: list[str] = field(default_factory=list)
    series: int = 0
    busy: float = 0.0
    without: float = 0.0

    def share(self, group: str) -> float:
        """Return the share of its interval that a group takes."""
        return median(self.seconds[group]) / self.intervals[group]

    @property
    def cpu(self) -> float:
        """The share of a core that all rules take."""
        return self.busy - self.without

    @property
    def whole(self) -> float:
        """The share of their intervals that all groups take."""
        return sum(map(self.share, self.rules))


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and answer the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.rules", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--replicas", type=int, default=1000)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=120.0, help="length of a measurement (default: %(default)s)")
    options = parser.parse_args(arguments)
    tools = all_versions("prometheus")
    if not tools:
        sys.exit(missing("prometheus"))
    missed = [_measured(tool, fleet(options.replicas, options.models), options) for tool in tools]
    return int(any(missed))


def _measured(tool: Tool, watched: Fleet, options: argparse.Namespace) -> bool:
    """Measure one version, print its table; answer whether the goal was missed."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rules-")))
        server = stack.enter_context(_exporter(folder, options.replicas, options.models))
        progress(f"{tool}: the past")
        _past(tool, watched, folder / "data")
        port = free_port()
        files = _files(watched, server, port)
        process, url = stack.enter_context(_prometheus(tool, files, port, folder))
        progress(f"{tool}: without rules")
        time.sleep(_SETTLE_SECONDS)
        _require_past(url)
        before = _busy(process, options.seconds)
        progress(f"{tool}: with rules, warming up")
        _write(files, folder)
        process.signal(signal.SIGHUP)
        time.sleep(_EACH_GROUP_SECONDS)
        cost = _cost(process, url, options.seconds, tool)
        progress(f"{tool}: without rules again")
        _write({path: _NO_RULES for path in files if path != _CONFIG}, folder)
        process.signal(signal.SIGHUP)
        time.sleep(_SETTLE_SECONDS)
        cost = replace(cost, without=(before + _busy(process, options.seconds)) / 2)
    print(_report(tool, options, cost))
    return bool(cost.failing) or cost.whole > _GOAL


@contextmanager
def _exporter(folder: Path, replicas: int, models: int) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "bench.ruleload.server", str(port), str(replicas), str(models)]
    with Process.start("pages", command, log=folder / "pages.log") as process:
        process.wait_ready(f"http://{LOOPBACK}:{port}/targets")
        yield f"{LOOPBACK}:{port}"


def _past(tool: Tool, watched: Fleet, data: Path) -> None:
    """Store what rules look back on; promtool has to be of the same version."""
    promtool = next(each for each in all_versions("promtool") if each.version == tool.version)
    now = int(time.time())
    target = {"instance": INSTANCE, "job": "replicas"}
    backfill(promtool, past_tiles(watched, now), data)
    backfill(promtool, past_counters(watched, target, now, _PAST_SECONDS, _SCRAPE_SECONDS), data)


def _files(watched: Fleet, exporter: str, port: int) -> dict[str, str]:
    """Generate what Prometheus reads; nobody listens where alerts go."""
    nobody = f"{LOOPBACK}:{free_port()}"
    addresses = {"exporter": exporter, "prometheus": f"{LOOPBACK}:{port}", "alertmanager": nobody}
    files = artefacts(watched, Deployment(addresses=replace(LOCAL, **addresses)))
    return {path: text for path, text in files.items() if path.startswith(("prometheus/", "alerts/"))}


def _write(files: Mapping[str, str], folder: Path) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def _require_past(url: str) -> None:
    """End the run if the past belongs to other series than the present, which would make windows look dearer."""
    counts = [f"count({TTFT.count})", f"count(last_over_time({TTFT.count}[1h]))"]
    answers = [requests.get(f"{url}/api/v1/query", params={"query": query}, timeout=60).json() for query in counts]
    now, past = (answer["data"]["result"][0]["value"][1] for answer in answers)
    if now != past:
        sys.exit(f"expected as many series in the past as now, got {past} and {now}; compare their labels")


@contextmanager
def _prometheus(tool: Tool, files: Mapping[str, str], port: int, folder: Path) -> Iterator[tuple[Process, str]]:
    """Start Prometheus without rules, whose files come later."""
    _write({_CONFIG: files[_CONFIG]}, folder)
    command = [
        str(tool.path),
        f"--config.file={folder / _CONFIG}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--storage.tsdb.retention.time=40d",
        f"--web.listen-address={LOOPBACK}:{port}",
        "--log.level=error",
    ]
    with Process.start(str(tool), command, log=folder / "prometheus.log") as process:
        process.wait_ready(f"http://{LOOPBACK}:{port}/-/ready", seconds=120)
        yield process, f"http://{LOOPBACK}:{port}"


def _cost(process: Process, url: str, seconds: float, tool: Tool) -> Cost:
    """Look at every group again and again."""
    groups = _groups(url)
    cost = Cost(
        rules={group["name"]: len(group["rules"]) for group in groups},
        intervals={group["name"]: float(group["interval"]) for group in groups},
    )
    begun, used = time.monotonic(), use(process.pid).cpu
    while (gone := time.monotonic() - begun) < seconds:
        progress(f"{tool}: {gone:.0f} of {seconds:.0f} s")
        time.sleep(_POLL_SECONDS)
        for group in _groups(url):
            cost.seconds[group["name"]].append(float(group["evaluationTime"]))
            cost.failing.extend(rule["lastError"] for rule in group["rules"] if rule.get("lastError"))
    busy = (use(process.pid).cpu - used) / (time.monotonic() - begun)
    answer = requests.get(f"{url}/api/v1/status/tsdb", timeout=30).json()
    return replace(cost, series=answer["data"]["headStats"]["numSeries"], busy=busy)


def _busy(process: Process, seconds: float) -> float:
    """Return the share of a core that a process takes."""
    begun, used = time.monotonic(), use(process.pid).cpu
    time.sleep(seconds)
    return (use(process.pid).cpu - used) / (time.monotonic() - begun)


def _groups(url: str) -> list[dict[str, Any]]:
    answer = requests.get(f"{url}/api/v1/rules", timeout=30)
    answer.raise_for_status()
    found: list[dict[str, Any]] = answer.json()["data"]["groups"]
    return found


def _report(tool: Tool, options: argparse.Namespace, cost: Cost) -> str:
    order = sorted(cost.rules, key=cost.share, reverse=True)
    rows = [
        (
            group,
            str(cost.rules[group]),
            f"{cost.intervals[group]:g}",
            f"{median(cost.seconds[group]):.4f}",
            f"{cost.share(group):.3%}",
        )
        for group in order
    ]
    rows.append(
        (
            "all",
            str(sum(cost.rules.values())),
            "",
            f"{sum(median(s) for s in cost.seconds.values()):.4f}",
            f"{cost.whole:.3%}",
        )
    )
    title = (
        f"\n{tool}: {options.replicas} replicas, {options.models} models, {cost.series} series;"
        f" load of this machine {os.getloadavg()[0]:.1f}"
    )
    text = table(title, ("group", "rules", "interval s", "seconds, median", "of the interval"), rows)
    failing = "".join(f"fails: {error}\n" for error in sorted(set(cost.failing)))
    verdict = "met" if cost.whole <= _GOAL else "missed"
    return (
        f"{text}{failing}rules take {cost.whole:.1%} of their intervals, goal at most {_GOAL:.0%}: {verdict}\n"
        f"CPU: {cost.busy:.1%} of a core with rules, {cost.without:.1%} without; rules and their garbage take"
        f" {cost.cpu:.1%}"
    )


if __name__ == "__main__":
    sys.exit(main())
