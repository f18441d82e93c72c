"""Engines made of real sockets, each with its own way to misbehave, and a look at them through the whole exporter."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvloop

from exporter.fleet import Fleet, Replica
from exporter.service import Options, Service
from exporter.watch import Outcome
from tests.exporter.captured import capture

PAGE = capture("vllm-0.32.0/under-load")
Behaviour = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]
"""What an engine does with a request (its head) and the connection."""


def answer(
    status: int = 200, body: bytes = PAGE, *, headers: str = "Content-Type: text/plain", length: int | None = None
) -> Behaviour:
    """Answer every request the same way; `length` may lie about the body's."""

    async def behave(_request: bytes, writer: asyncio.StreamWriter) -> None:
        size = len(body) if length is None else length
        writer.write(f"HTTP/1.1 {status} X\r\n{headers}\r\nContent-Length: {size}\r\n\r\n".encode() + body)

    return behave


def raw(data: bytes, *, then_close: bool = True) -> Behaviour:
    """Answer with these bytes, and close the connection or keep it open in silence."""

    async def behave(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        if then_close:
            writer.close()
        else:
            await asyncio.Event().wait()

    return behave


def by_path(**behaviours: Behaviour) -> Behaviour:
    """Behave by the first part of the path; others are not found."""

    async def behave(request: bytes, writer: asyncio.StreamWriter) -> None:
        name = path_of(request).strip("/").replace("/", "_")
        await behaviours.get(name, answer(404, b""))(request, writer)

    return behave


def path_of(request: bytes) -> str:
    """Answer the path that a request asks for."""
    return request.split(b" ", 2)[1].decode()


@asynccontextmanager
async def engine(behaviour: Behaviour, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Listen on a free loopback port and behave; yield host:port."""
    open_connections: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            open_connections.add(task)
        try:
            while not writer.is_closing():
                await behaviour(await reader.readuntil(b"\r\n\r\n"), writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in open_connections:
            task.cancel()
        await asyncio.gather(*open_connections, return_exceptions=True)


@asynccontextmanager
async def watching(
    url: str,
    *,
    min_interval: float = 0.0,
    state_dir: Path | None = None,
    **fields: Any,  # noqa: ANN401 - fields of a replica
) -> AsyncIterator[Service]:
    """Watch one replica named r."""
    replica = Replica(**{"name": "r", "url": url, "model": "m", "engine": "vllm", **fields})
    options = Options(fleet=Path("fleet.yml"), min_interval=min_interval, state_dir=state_dir)
    service = Service(options, Fleet(replicas=(replica,)))
    try:
        yield service
    finally:
        await service.close()


def look(behaviour: Behaviour, *, budget: float = 30.0, **fields: Any) -> Outcome:  # noqa: ANN401 - fields of a replica
    """Answer what one scrape of an engine ends in."""

    async def scenario() -> Outcome:
        async with engine(behaviour) as address, watching(f"http://{address}", **fields) as service:
            return await service.look(service.watches["r"], budget)

    return uvloop.run(scenario())  # the event loop of production, whose errors are not all asyncio's
