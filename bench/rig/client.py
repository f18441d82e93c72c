"""A reader of /probe, like Prometheus: kept-alive connections, one request after the other on each.

In: the exporter's address, names of replicas, and a rate or as fast as it goes. Out: how many answers came.
An answer that is not a page of a replica that is up ends the measurement: a figure of failures is none.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import cycle

__all__ = ["NoPageError", "probe_at_rate", "probe_for", "probe_times"]

_UP = b"\nllm_replica_up{model="
_LENGTH = b"content-length:"


class NoPageError(Exception):
    """The exporter did not answer the page of a replica that is up."""


class _Connection:
    """One connection that is kept alive."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def probe(self, name: str) -> bytes:
        """Answer the page of a replica."""
        head = f"GET /probe?target={name} HTTP/1.1\r\nHost: exporter\r\nX-Prometheus-Scrape-Timeout-Seconds: 10\r\n\r\n"
        self._writer.write(head.encode())
        answer = await self._reader.readuntil(b"\r\n\r\n")
        fields = answer.lower().split(b"\r\n")
        length = next(int(field[len(_LENGTH) :]) for field in fields if field.startswith(_LENGTH))
        page = await self._reader.readexactly(length)
        line = page[page.find(_UP) + 1 :].partition(b"\n")[0]
        if b" 200 " not in fields[0] or not line.endswith((b" 1.0", b" 1")):
            raise NoPageError(f"{name}: {fields[0].decode()}: {line.decode() or page[:200].decode()}")
        return page


@asynccontextmanager
async def _connected(port: int) -> AsyncIterator[_Connection]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield _Connection(reader, writer)
    finally:
        writer.close()
        await writer.wait_closed()


async def probe_at_rate(port: int, names: Sequence[str], *, rate: float, seconds: float) -> int:
    """Probe replicas in turn, so many a second, as far as the exporter keeps up; answer how many were."""
    start = time.monotonic()
    done = 0
    async with _connected(port) as connection:
        for name in cycle(names):
            due = start + done / rate
            if max(due, time.monotonic()) >= start + seconds:
                break
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            await connection.probe(name)
            done += 1
    return done


async def probe_for(port: int, names: Sequence[str], *, seconds: float, connections: int) -> int:
    """Probe as fast as it goes for some seconds; answer how many were."""
    end = time.monotonic() + seconds
    turn = cycle(names)
    return sum(await asyncio.gather(*(_until(port, turn, end) for _ in range(connections))))


async def probe_times(port: int, names: Sequence[str], *, times: int, connections: int) -> None:
    """Probe so many times, as fast as it goes."""
    turn = iter([name for _, name in zip(range(times), cycle(names), strict=False)])
    await asyncio.gather(*(_until(port, turn, float("inf")) for _ in range(connections)))


async def _until(port: int, names: Iterator[str], end: float) -> int:
    done = 0
    async with _connected(port) as connection:
        while time.monotonic() < end and (name := next(names, None)) is not None:
            await connection.probe(name)
            done += 1
    return done
