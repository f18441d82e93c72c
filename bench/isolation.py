"""How long probes of healthy replicas take, alone and beside hundreds that hang, drip or flood.

In: nothing but this machine. Out: both distributions side by side, their ratio, and what the exporter uses meanwhile.
Replicas are asked as a Prometheus asks them: each once per interval, on a connection of its own, spread over the
interval, whether or not earlier answers came. The two ways take turns, so that a busy machine is busy for both.
"""

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles

from bench.rig.process import use
from bench.rig.sick import KINDS
from bench.rig.subjects import Exporter, exporter, upstream
from bench.rig.table import progress, table
from running.processes import Process

_SHOWN = {"p50": 50, "p90": 90, "p99": 99, "p99.9": 99.9}
_PATIENCE = 10.0  # seconds, as Prometheus has it
_UP = b"\nllm_replica_up{"


@dataclass(slots=True)
class _Seen:
    """What probes of one kind of replica took, in seconds, and how many were up."""

    took: list[float] = field(default_factory=list)
    up: int = 0

    def at(self, percent: float) -> float:
        """Answer a percentile in milliseconds."""
        return 1000 * quantiles(self.took, n=1000, method="inclusive")[round(percent * 10) - 1]


class _Target:
    """One replica, as Prometheus asks for it."""

    def __init__(self, port: int, name: str) -> None:
        self._port = port
        self._head = f"GET /probe?target={name} HTTP/1.1\r\nHost: e\r\nX-Prometheus-Scrape-Timeout-Seconds: 10\r\n\r\n"
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def probe(self, seen: _Seen) -> None:
        """Ask once, and note how long it took; an answer that does not come in time is one that is not up."""
        start = time.perf_counter()
        try:
            async with asyncio.timeout(_PATIENCE):
                is_up = await self._ask()
            seen.up += is_up
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            self.close()
        seen.took.append(time.perf_counter() - start)

    async def _ask(self) -> bool:
        """Tell whether the replica is up."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=2**20)
        reader, writer = self._streams
        writer.write(self._head.encode())
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        page = await reader.readexactly(length)
        return page[page.find(_UP) + 1 :].partition(b"\n")[0].endswith((b" 1.0", b" 1"))

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _watch(port: int, names: Sequence[str], interval: float, seconds: float) -> _Seen:
    """Ask each replica once per interval, for some seconds; wait for the last answers."""
    seen = _Seen()
    targets = [_Target(port, name) for name in names]
    asked = []
    start = asyncio.get_running_loop().time()
    for turn in range(int(seconds / interval * len(targets))):
        await asyncio.sleep(start + turn * interval / len(targets) - asyncio.get_running_loop().time())
        asked.append(asyncio.create_task(targets[turn % len(targets)].probe(seen)))
    await asyncio.gather(*asked)
    for target in targets:
        target.close()
    return seen


async def _side_by_side(port: int, well: Sequence[str], sick: Sequence[str], interval: float, seconds: float) -> _Seen:
    seen, *_ = await asyncio.gather(
        *(_watch(port, names, interval, seconds) for names in (well, sick) if names),
    )
    return seen


@contextmanager
def _sick(folder: Path, wanted: dict[str, int]) -> Iterator[list[int]]:
    log = folder / "sick.log"
    options = [f"--{kind}={number}" for kind, number in wanted.items()]
    with Process.start("sick", [sys.executable, "-m", "bench.rig.sick", *options], log=log) as process:
        process.wait_until(lambda: log.read_text().endswith("}\n"), "listen")
        yield [port for ports in json.loads(log.read_text()).values() for port in ports]


def _report(alone: _Seen, beside: _Seen, replicas: str) -> str:
    rows = [
        [name, f"{alone.at(at):.1f}", f"{beside.at(at):.1f}", f"{beside.at(at) / alone.at(at):.2f}"]
        for name, at in _SHOWN.items()
    ]
    most = [1000 * max(seen.took) for seen in (alone, beside)]
    rows.append(["slowest", f"{most[0]:.1f}", f"{most[1]:.1f}", f"{most[1] / most[0]:.2f}"])
    rows.append(["up", *(f"{seen.up} of {len(seen.took)}" for seen in (alone, beside)), ""])
    return table(f"A probe of a healthy replica, in ms ({replicas})", ("", "alone", "beside", "ratio"), rows)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and answer the exit status: 1 if a healthy replica was ever not up."""
    asked = _parser().parse_args(arguments)
    wanted = {kind: getattr(asked, kind) for kind in KINDS}
    _allow_many_files()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        well = stack.enter_context(upstream(folder, asked.healthy)).ports
        sick = stack.enter_context(_sick(folder, wanted))
        ours = stack.enter_context(exporter(folder, [*well, *sick]))
        alone, beside = _measured(ours, len(well), asked)
    replicas = ", ".join(f"{number} {kind}" for kind, number in {"healthy": asked.healthy, **wanted}.items() if number)
    print(_report(alone, beside, replicas))
    return int(alone.up < len(alone.took) or beside.up < len(beside.took))


def _measured(ours: Exporter, well: int, asked: argparse.Namespace) -> tuple[_Seen, _Seen]:
    healthy, sick = ours.names[:well], ours.names[well:]
    alone, beside = _Seen(), _Seen()
    asyncio.run(_watch(ours.port, healthy, asked.interval / 2, asked.interval / 2))
    for turn in range(asked.turns):
        for seen, others, what in ((alone, (), "alone"), (beside, sick, "beside")):
            progress(f"turn {turn + 1} of {asked.turns}: {what}")
            before, start = use(ours.process.pid), time.monotonic()
            found = asyncio.run(_side_by_side(ours.port, healthy, others, asked.interval, asked.seconds))
            after = use(ours.process.pid)
            share = (after.cpu - before.cpu) / (time.monotonic() - start)
            progress(f"  {share:.0%} of a core, {after.mebibytes:.0f} MiB, {after.threads} threads")
            seen.took += found.took
            seen.up += found.up
    return alone, beside


def _allow_many_files() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.isolation", description=__doc__)
    parser.add_argument("--healthy", type=int, default=600, metavar="N", help="default: %(default)s")
    for kind, number in {"hanging": 300, "dripping": 100, "flooding": 0}.items():
        parser.add_argument(f"--{kind}", type=int, default=number, metavar="N", help="default: %(default)s")
    parser.add_argument(
        "--interval", type=float, default=10.0, help="seconds between probes of a replica (%(default)s)"
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each turn is (%(default)s)")
    parser.add_argument("--turns", type=int, default=2, help="how often alone and beside take turns (%(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
