"""What a real Prometheus makes of pages. In: pages; out, for each: its `up`, and the series and values in its database.

Some hundred targets are scraped once a second, and every scrape gets another page. Which scrape stored which samples is
told by time: a page was handed out between the time stamp of its scrape and that plus the scrape's duration.
"""

import asyncio
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from bench.differential.exposition import Exposition, Identity, Verdict, bits
from bench.differential.serve import Handed, PageServer
from running.ports import free_port
from running.processes import Process
from running.tools import Tool

__all__ = ["LostPagesError", "RealPrometheus"]

_INTERVAL_SECONDS = 1.0
_SLOW_SECONDS = 0.8  # a scrape that took this long may have run out of time, which is no verdict on its page
_CLOCK_SECONDS = 0.01  # Prometheus rounds time stamps, by up to 2 ms
_SETTLE_SECONDS = 0.25  # from a page's last byte until its samples can be queried
_PATIENCE_SECONDS = 120  # for all pages of a batch to be fetched
_TRIES = 30  # a machine that is busy for a while must not end a long comparison
_OURS = "zz"  # value of the labels that Prometheus adds to every series, and their prefix
_TARGET = "zz_target"
_ADDED = {("job", _OURS), ("instance", _OURS)}
_REPORTS = frozenset(
    {
        "up",
        "scrape_duration_seconds",
        "scrape_samples_scraped",
        "scrape_samples_post_metric_relabeling",
        "scrape_series_added",
    }
)


class LostPagesError(Exception):
    """Prometheus gave no verdict on some pages, however often they were offered."""


@dataclass(slots=True)
class _Scrapes:
    """What a query found: per target the scrapes as (time stamp, up, duration), and the samples of each scrape."""

    of_target: dict[str, list[tuple[float, bool, float]]] = field(default_factory=lambda: defaultdict(list))
    samples: dict[tuple[str, float], dict[Identity, int]] = field(default_factory=lambda: defaultdict(dict))

    def verdict(self, page: Handed, requests: Iterable[float]) -> Verdict | None:
        """Answer the verdict on a page; None if its scrape is not to be found, or was too slow to tell.

        `requests` are those of the page's target: one that Prometheus has given up may be read together with the next.
        """
        found = [scrape for scrape in self.of_target[page.target] if _within(page.at, scrape)]
        if len(found) != 1 or found[0][2] > _SLOW_SECONDS or sum(_within(at, found[0]) for at in requests) != 1:
            return None
        at, accepted, _ = found[0]
        return Verdict(accepted=accepted, samples=self.samples[page.target, at] if accepted else {})


class RealPrometheus:
    """A Prometheus that runs for as long as the block that started it."""

    def __init__(self, tool: Tool, url: str, pages: PageServer, session: aiohttp.ClientSession) -> None:
        self.from_3 = tool.release >= (3,)
        self._url = url
        self._pages = pages
        self._session = session

    @classmethod
    @asynccontextmanager
    async def started(cls, tool: Tool, *, targets: int) -> AsyncIterator["RealPrometheus"]:
        """Start a Prometheus with an empty database that scrapes so many targets a second."""
        with tempfile.TemporaryDirectory(prefix="parser-differential-") as scratch:
            async with PageServer.listening() as pages, aiohttp.ClientSession() as session:
                process = _start(tool.path, Path(scratch), pages.port, targets)
                with process:
                    await asyncio.to_thread(process.wait_ready, f"{_url(process)}/-/ready")
                    yield cls(tool, _url(process), pages, session)

    async def judge(self, pages: Sequence[Exposition]) -> list[Verdict]:
        """Answer the verdict on each page; raises LostPagesError."""
        verdicts: dict[int, Verdict] = {}
        for _ in range(_TRIES):
            missing = [index for index in range(len(pages)) if index not in verdicts]
            if not missing:
                return [verdicts[index] for index in range(len(pages))]
            found = await self._try([pages[index] for index in missing])
            verdicts.update((missing[index], verdict) for index, verdict in found.items())
        raise LostPagesError(
            f"no verdict on {len(pages) - len(verdicts)} of {len(pages)} pages after {_TRIES} scrapes each: "
            f"scrapes took over {_SLOW_SECONDS} s, so this machine is too busy; try fewer targets"
        )

    async def explain(self, page: Exposition) -> str:
        """Answer what Prometheus says about a page that it refuses."""
        before, self._pages.idle = self._pages.idle, page
        try:
            await asyncio.sleep(2 * _INTERVAL_SECONDS)  # every target has it by then
            async with self._session.get(f"{self._url}/api/v1/targets?state=active") as answer:
                targets = (await answer.json())["data"]["activeTargets"]
        finally:
            self._pages.idle = before
        errors = [target["lastError"] for target in targets if "deadline" not in target["lastError"]]
        return max(errors, key=len, default="")

    async def _try(self, pages: Sequence[Exposition]) -> dict[int, Verdict]:
        started = time.time()
        batch = self._pages.offer(pages)
        try:
            await asyncio.wait_for(batch.complete.wait(), _PATIENCE_SECONDS)
        except TimeoutError:
            raise LostPagesError(
                f"Prometheus fetched {len(batch.handed)} of {len(pages)} pages in {_PATIENCE_SECONDS} s: has it died?"
            ) from None
        await asyncio.sleep(_SETTLE_SECONDS)
        scrapes = await self._scrapes_since(started - _CLOCK_SECONDS)
        found = {page.index: scrapes.verdict(page, self._pages.requests[page.target]) for page in batch.handed}
        return {index: verdict for index, verdict in found.items() if verdict is not None}

    async def _scrapes_since(self, started: float) -> _Scrapes:
        now = time.time()
        query = f'{{{_TARGET}!=""}}[{int(1000 * (now - started)) + 1}ms]'
        async with self._session.post(
            f"{self._url}/api/v1/query", data={"query": query, "time": f"{now:.3f}"}
        ) as answer:
            document = json.loads(await answer.read())
        if document["status"] != "success":
            raise LostPagesError(f"Prometheus refused {query}: {document}")
        return _scrapes(document["data"]["result"])


def _within(at: float, scrape: tuple[float, bool, float]) -> bool:
    return scrape[0] - _CLOCK_SECONDS <= at <= scrape[0] + scrape[2] + _CLOCK_SECONDS


def _scrapes(result: Iterable[Any]) -> _Scrapes:
    scrapes = _Scrapes()
    up: dict[tuple[str, float], bool] = {}
    durations: dict[tuple[str, float], float] = {}
    for series in result:
        labels = series["metric"]
        target, name = labels.pop(_TARGET), labels["__name__"]
        if name == "up":
            up.update(((target, at), value == "1") for at, value in series["values"])
        elif name == "scrape_duration_seconds":
            durations.update(((target, at), float(value)) for at, value in series["values"])
        elif name not in _REPORTS:
            identity = frozenset(labels.items() - _ADDED)
            for at, value in series["values"]:
                scrapes.samples[target, at][identity] = bits(float(value))
    for (target, at), accepted in up.items():
        if (target, at) in durations:
            scrapes.of_target[target].append((at, accepted, durations[target, at]))
    return scrapes


def _start(binary: Path, scratch: Path, pages_port: int, targets: int) -> Process:
    configuration = scratch / "prometheus.yml"
    configuration.write_text(json.dumps(_configuration(pages_port, targets)))  # JSON is YAML
    port = free_port()
    command: list[str | Path] = [
        binary,
        f"--config.file={configuration}",
        f"--storage.tsdb.path={scratch / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--query.max-samples=500000000",
        "--log.level=error",
    ]
    return Process.start(f"prometheus-{port}", command, log=scratch / "log")


def _url(process: Process) -> str:
    return f"http://127.0.0.1:{process.name.rpartition('-')[2]}"


def _configuration(pages_port: int, targets: int) -> dict[str, Any]:
    return {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [
            {
                "job_name": _OURS,
                "honor_labels": True,
                # Time stamps would make the database refuse samples that the parser took.
                "honor_timestamps": False,
                "static_configs": [
                    {
                        "targets": [f"127.0.0.1:{pages_port}"],
                        "labels": {"__metrics_path__": f"/{target}", "instance": _OURS, _TARGET: str(target)},
                    }
                    for target in range(targets)
                ],
            }
        ],
    }
