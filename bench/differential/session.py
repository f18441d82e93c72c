"""A comparison of many pages. In: a Prometheus, a seed, a number of pages; out: a `Comparison`, with progress.

Prometheus starts anew every so many pages, since its database keeps every series it ever saw.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bench.differential.compare import Comparison, Difference, compare
from bench.differential.exposition import Exposition
from bench.differential.known import known_pages
from bench.differential.minimise import smallest
from bench.differential.mutate import Inventor
from bench.differential.ours import OurReader
from bench.differential.real import RealPrometheus
from running.tools import Tool

__all__ = ["Finding", "Size", "run"]

_EXPLAINED = 3  # differences that are shrunk; one cause makes many


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much to compare, and how many pages are under way."""

    pages: int
    targets: int = 600
    batch: int = 1000
    batches_at_once: int = 3
    pages_per_prometheus: int = 25_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A difference on its smallest page, and what Prometheus says about that."""

    difference: Difference
    error: str


async def run(
    tool: Tool, *, seed: int, size: Size, progress: Callable[[Comparison], None] = lambda _: None
) -> tuple[Comparison, list[Finding]]:
    """Compare the known pages and then so many invented ones; shrink some of the differences."""
    total = Comparison()
    findings: list[Finding] = []
    inventor = Inventor(seed)
    for first in range(0, max(size.pages, 1), size.pages_per_prometheus):
        last = min(size.pages, first + size.pages_per_prometheus)
        batches = iter([range(start, min(last, start + size.batch)) for start in range(first, last, size.batch)])
        async with RealPrometheus.started(tool, targets=size.targets) as real:
            if not first:
                total.add(await compare(real, OurReader(), known_pages()))
            workers = (_work(real, inventor, batches, total, progress) for _ in range(size.batches_at_once))
            await asyncio.gather(*workers)
            for difference in total.differences[len(findings) : _EXPLAINED]:
                findings.append(await _find(real, difference))  # noqa: PERF401 - one after the other
    return total, findings


async def _work(
    real: RealPrometheus,
    inventor: Inventor,
    batches: Iterator[range],
    total: Comparison,
    progress: Callable[[Comparison], None],
) -> None:
    ours = OurReader()
    for numbers in batches:
        pages = await asyncio.to_thread(inventor.pages, numbers)
        total.add(await compare(real, ours, pages))
        progress(total)


async def _find(real: RealPrometheus, difference: Difference) -> Finding:
    ours = OurReader()

    async def differing(pages: Sequence[Exposition]) -> list[Difference]:
        return (await compare(real, ours, pages)).differences

    async def differs(pages: Sequence[Exposition]) -> list[bool]:
        found = {each.page for each in await differing(pages)}
        return [page in found for page in pages]

    page = await smallest(difference.page, differs)
    again = await differing([page])
    return Finding(difference=again[0] if again else difference, error=await real.explain(page))
