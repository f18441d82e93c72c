"""CPU of one fetch of a page, by the client of the scrape path and by aiohttp's, both on uvloop.

In: nothing but this machine. Out: a table. The clients take turns; the replica is another process. A fetch ends with
the bytes of the body; both keep their connection.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import uvloop

from bench.rig.subjects import upstream
from bench.rig.table import progress, spread, table
from exporter.scrape import Origin, Scraper

_FETCHES = 2000
_SECONDS = 10.0


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.fetch", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="turns of each (default: %(default)s)")
    rounds = parser.parse_args(arguments).rounds
    with tempfile.TemporaryDirectory() as folder, upstream(Path(folder), 1) as replica:
        figures = uvloop.run(_measured(f"http://127.0.0.1:{replica.ports[0]}", rounds))
    rows = [(name, *spread(each, 3)) for name, each in figures.items()]
    print(table(f"CPU of a fetch, milliseconds; {_FETCHES} fetches a turn", ("client", "median", "from, to"), rows))
    return 0


async def _measured(url: str, rounds: int) -> dict[str, list[float]]:
    scraper, timeout = Scraper(), aiohttp.ClientTimeout(total=_SECONDS)
    async with aiohttp.ClientSession(auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()) as session:

        async def ours() -> bytes:
            deadline = asyncio.get_running_loop().time() + _SECONDS
            return (await scraper.get(Origin(url=url), "/metrics", deadline)).body

        async def theirs() -> bytes:
            async with session.get(f"{url}/metrics", timeout=timeout, allow_redirects=False) as response:
                return await response.read()

        turns = {"the scrape path's": ours, f"aiohttp {aiohttp.__version__}": theirs}
        figures: dict[str, list[float]] = {name: [] for name in turns}
        for number in range(1, rounds + 1):
            for name, fetch in turns.items():
                progress(f"round {number} of {rounds}: {name}")
                figures[name].append(await _turn(fetch))
    await scraper.close()
    return figures


async def _turn(fetch: Callable[[], Awaitable[bytes]]) -> float:
    """Answer milliseconds of CPU for one fetch."""
    start = time.process_time()
    for _ in range(_FETCHES):
        await fetch()
    return 1000 * (time.process_time() - start) / _FETCHES


if __name__ == "__main__":
    sys.exit(main())
