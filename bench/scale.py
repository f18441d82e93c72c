"""Cost of a probe with 10, 100 and 1,000 replicas, probes a second on one core, memory, and growth over many probes.

In: nothing but this machine. Out: three tables; exit status 1 if a goal was missed: a cost that is flat within 10 %,
500 probes a second, 128 MiB with 1,000 replicas, nothing that grows. The exporter has a core of its own; the replicas
and the reader share another.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.rig.client import probe_at_rate, probe_for, probe_times
from bench.rig.process import Use
from bench.rig.subjects import Exporter, exporter, pinned, upstream
from bench.rig.table import progress, spread, table

_SIZES = (10, 100, 1000)
_RATE = 200  # probes a second where cost is measured: 1,000 replicas every five seconds
_CONNECTIONS = 4
_ASIDE = max(_SIZES)  # a replica may have a second connection for some seconds, after it was asked for its version
_ROUNDS = 5
_STEPS = 10
_FLAT = 0.1
_LEAST_PROBES = 500
_MOST_MEMORY = 128.0
_POOL = 4  # threads; a pool starts its threads one by one, when there is work for them
_GROWTH = 4.0  # MiB; the allocator gives and takes that much


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    """A table, and the goals that were missed, in words."""

    text: str
    missed: tuple[str, ...]


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and answer the exit status."""
    options = _parser().parse_args(arguments)
    ours, theirs = _cores()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.sched_setaffinity(0, {theirs})  # processes that are started from here share it, until they are pinned
        replicas = stack.enter_context(upstream(folder, max(_SIZES)))
        subjects = [stack.enter_context(exporter(folder, replicas.ports[:size])) for size in _SIZES]
        for subject in subjects:
            pinned(subject.process.pid, ours)
            asyncio.run(probe_times(subject.port, subject.names, times=2 * max(_SIZES), connections=_CONNECTIONS))
        results = [_cost(subjects, options.seconds), _speed(subjects[-1], options.seconds)]
        results.append(_growth(subjects[-1], options.probes))
    missed = [goal for result in results for goal in result.missed]
    print(*(result.text for result in results), *(f"missed: {goal}" for goal in missed), sep="\n")
    return int(bool(missed))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="length of a turn (default: %(default)s)")
    parser.add_argument("--probes", type=int, default=200_000, help="probes to grow over (default: %(default)s)")
    return parser


def _cores() -> tuple[int, int]:
    """Answer the exporter's core and everybody else's; one and the same on a machine with a single core."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[0], cores[-1]


def _cost(subjects: Sequence[Exporter], seconds: float) -> _Result:
    """Measure CPU per probe by size of the fleet, in turns."""
    figures: dict[int, list[float]] = {len(subject.names): [] for subject in subjects}
    for number in range(1, _ROUNDS + 1):
        for subject in subjects:
            progress(f"cost, round {number} of {_ROUNDS}: {len(subject.names)} replicas")
            before = subject.use.cpu
            probes = asyncio.run(probe_at_rate(subject.port, subject.names, rate=_RATE, seconds=seconds))
            figures[len(subject.names)].append(1000 * (subject.use.cpu - before) / probes)
    fewest = min(figures[min(figures)])
    rows = [(str(size), *spread(each), f"{min(each) / fewest:.2f}") for size, each in figures.items()]
    # Whatever else the machine does only ever adds to a figure, so the smallest ones are compared.
    most = max(min(each) for each in figures.values())
    return _Result(
        text=table("CPU per probe, milliseconds", ("replicas", "median", "from, to", "least / of 10"), rows),
        missed=("cost per probe flat within 10 %",) if most > (1 + _FLAT) * fewest else (),
    )


def _speed(subject: Exporter, seconds: float) -> _Result:
    """Measure probes a second on the exporter's core, and its memory."""
    rates = []
    for number in range(1, _ROUNDS + 1):
        progress(f"speed, round {number} of {_ROUNDS}")
        before, start = subject.use.cpu, time.monotonic()
        probes = asyncio.run(probe_for(subject.port, subject.names, seconds=seconds, connections=_CONNECTIONS))
        rates.append((probes / (time.monotonic() - start), probes / (subject.use.cpu - before)))
    by_clock, by_cpu = ([one[at] for one in rates] for at in (0, 1))
    memory = subject.use.mebibytes
    rows = [
        ("probes a second on one core, by the clock", *spread(by_clock, 0)),
        ("probes a second of the exporter's own CPU time", *spread(by_cpu, 0)),
        ("resident memory, MiB", f"{memory:.1f}", ""),
    ]
    missed = []
    if median(by_cpu) < _LEAST_PROBES:
        missed.append(f"{_LEAST_PROBES} probes a second")
    if memory > _MOST_MEMORY:
        missed.append(f"{_MOST_MEMORY:.0f} MiB")
    return _Result(
        text=table(f"{len(subject.names)} replicas", ("as fast as it goes", "median", "from, to"), rows),
        missed=tuple(missed),
    )


def _growth(subject: Exporter, probes: int) -> _Result:
    """Measure memory, files and threads over many probes."""
    uses = [subject.use]
    for step in range(1, _STEPS + 1):
        progress(f"growth: {step * probes // _STEPS} of {probes} probes")
        times = probes // _STEPS
        asyncio.run(probe_times(subject.port, subject.names, times=times, connections=_CONNECTIONS))
        uses.append(subject.use)
    rows = [
        (str(step * probes // _STEPS), f"{one.mebibytes:.1f}", str(one.files), str(one.threads))
        for step, one in enumerate(uses)
    ]
    return _Result(
        text=table("Growth", ("probes", "resident MiB", "files", "threads"), rows),
        missed=tuple(_grown(uses[1], uses[-1])),
    )


def _grown(first: Use, last: Use) -> list[str]:
    grown = []
    if last.mebibytes - first.mebibytes > _GROWTH:
        grown.append(f"memory that does not grow: {last.mebibytes - first.mebibytes:.1f} MiB more")
    if last.files - first.files > _ASIDE + _CONNECTIONS:
        grown.append(f"files that do not grow: {last.files - first.files} more")
    if last.threads > first.threads + _POOL:
        grown.append(f"threads that do not grow: {last.threads - first.threads} more")
    return grown


if __name__ == "__main__":
    sys.exit(main())
