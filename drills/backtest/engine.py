"""Engine: a real Prometheus on a folder of backfilled blocks. In: lines of samples, queries. Out: when they answer.

The one module of the backtest that starts programs and touches files.
"""

import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from running.errors import NotReadyError
from running.ports import LOOPBACK, free_port
from running.tools import Tool

__all__ = ["Answer", "Engine", "Tools", "backfill", "serving"]

_START_SECONDS = 60.0
_QUERY_SECONDS = 600.0
_POINTS = 10_000
"""A little less than Prometheus answers per series."""

_KEY = "query"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The programs that evaluate."""

    prometheus: Tool
    promtool: Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A series that a query answered with; samples are times in Unix seconds and values as Prometheus prints them."""

    key: str
    labels: Mapping[str, str]
    samples: Sequence[tuple[float, str]]


def backfill(promtool: Tool, lines: Iterable[str], directory: Path) -> None:
    """Turn samples into blocks below a data folder; raises NotReadyError with promtool's words."""
    text = directory.with_suffix(".om")
    with text.open("w", encoding="utf-8") as file:
        file.writelines(lines)
        file.write("# EOF\n")
    # promtool reads the whole text once per block, so few blocks take less time.
    fill = ["tsdb", "create-blocks-from", "--max-block-duration=1000h", "openmetrics", "--quiet"]
    command = [str(promtool.path), *fill, str(text), str(directory)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - of our own making
    text.unlink()
    if result.returncode:
        raise NotReadyError(f"{promtool} could not make blocks: {result.stderr[-2000:]}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A running Prometheus that is only asked."""

    url: str
    session: requests.Session

    def values(self, queries: Mapping[str, str], start: float, end: float, step: float) -> Iterator[Answer]:
        """Answer queries at every `step` seconds from `start` (included) to `end` (excluded).

        All are asked as one, told apart by a label: a request costs more than most of its queries.
        """
        if not queries:
            return
        query = " or ".join(f'label_replace({text}, "{_KEY}", "{key}", "", "")' for key, text in queries.items())
        at = start
        while at < end:
            last = min(end - step / 2, at + (_POINTS - 1) * step)
            for series in self._asked(query, at, last, step):
                labels = dict(series["metric"])
                key = labels.pop(_KEY)
                labels.pop("__name__", None)
                yield Answer(key=key, labels=labels, samples=series["values"])
            at += _POINTS * step

    def _asked(self, query: str, start: float, end: float, step: float) -> list[dict[str, Any]]:
        form = {"query": query, "start": str(start), "end": str(end), "step": str(step)}
        answer = self.session.post(f"{self.url}/api/v1/query_range", data=form, timeout=_QUERY_SECONDS)
        if answer.status_code != requests.codes.ok:
            raise NotReadyError(f"Prometheus refused a query: {answer.text[:1000]}\n{query[:2000]}")
        result: list[dict[str, Any]] = answer.json()["data"]["result"]
        return result


@contextmanager
def serving(prometheus: Tool, directory: Path, *, lookback: str = "5m") -> Iterator[Engine]:
    """Serve a data folder until the block ends; nothing is scraped. `lookback` is how old a sample may be."""
    port = free_port()
    config = directory.with_suffix(".yml")
    config.write_text("{}\n", encoding="utf-8")
    log = directory.with_suffix(".log")
    command = [
        str(prometheus.path),
        f"--config.file={config}",
        f"--storage.tsdb.path={directory}",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address={LOOPBACK}:{port}",
        "--query.max-samples=500000000",
        "--query.timeout=10m",
        f"--query.lookback-delta={lookback}",
        "--log.level=warn",
    ]
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)  # noqa: S603 - of our own making
    try:
        with requests.Session() as session:
            session.trust_env = False
            engine = Engine(url=f"http://{LOOPBACK}:{port}", session=session)
            _wait_until_ready(engine, process, log)
            yield engine
    finally:
        process.terminate()
        process.wait()


def _wait_until_ready(engine: Engine, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            if engine.session.get(f"{engine.url}/-/ready", timeout=1).ok:
                return
        except requests.ConnectionError:
            pass
        if process.poll() is not None or time.monotonic() > deadline:
            raise NotReadyError(f"Prometheus does not serve the blocks: {log.read_text(encoding='utf-8')[-2000:]}")
        time.sleep(0.05)
