"""Hands each scrape of each target the next waiting page. In: pages; out: who got which page, and when.

Raw sockets, since a web framework costs more per page than Prometheus spends on reading it.
"""

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from bench.differential.exposition import Exposition

__all__ = ["Batch", "Handed", "PageServer"]

_LOOPBACK = "127.0.0.1"
_REMEMBERED_REQUESTS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """A page that was handed out: its place in the batch, the target that got it, and the wall clock."""

    index: int
    target: str
    at: float


@dataclass(slots=True, kw_only=True)
class Batch:
    """Pages that wait to be handed out once each; `complete` is set when all are."""

    pages: Sequence[Exposition]
    handed: list[Handed] = field(default_factory=list)
    complete: asyncio.Event = field(default_factory=asyncio.Event)


class PageServer:
    """A web server with any number of targets, one per path; when no page waits, each gets the idle one."""

    def __init__(self) -> None:
        self.port = 0
        self.idle = Exposition(body=b"")
        self.requests: dict[str, deque[float]] = defaultdict(partial(deque, maxlen=_REMEMBERED_REQUESTS))
        """Per target, when its last requests came."""
        self._waiting: deque[tuple[Batch, int]] = deque()
        self.connections: set[asyncio.Transport] = set()

    @classmethod
    @asynccontextmanager
    async def listening(cls) -> AsyncIterator["PageServer"]:
        """Listen on a free loopback port until the block ends."""
        server = cls()
        listener = await asyncio.get_running_loop().create_server(
            lambda: _Connection(server), _LOOPBACK, 0, backlog=4096
        )
        server.port = listener.sockets[0].getsockname()[1]
        try:
            yield server
        finally:
            listener.close()
            for connection in tuple(server.connections):
                connection.abort()
            await listener.wait_closed()

    def offer(self, pages: Sequence[Exposition]) -> Batch:
        """Queue pages; the next scrapes, of whichever targets, get one each."""
        batch = Batch(pages=pages)
        self._waiting.extend((batch, index) for index in range(len(pages)))
        return batch

    def next_page(self, target: str) -> Exposition:
        """Answer the page that a scrape of the target gets."""
        now = time.time()
        self.requests[target].append(now)
        if not self._waiting:
            return self.idle
        batch, index = self._waiting.popleft()
        batch.handed.append(Handed(index=index, target=target, at=now))
        if len(batch.handed) == len(batch.pages):
            batch.complete.set()
        return batch.pages[index]


class _Connection(asyncio.Protocol):
    def __init__(self, server: PageServer) -> None:
        self._server = server
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - for the type checker; TCP gives no other
        self._transport = transport
        self._server.connections.add(transport)

    def connection_lost(self, _: Exception | None) -> None:
        self._server.connections.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._received.endswith(b"\r\n\r\n"):
            return
        target = self._received.split(b" ", 2)[1].decode().lstrip("/")
        self._received = b""
        page = self._server.next_page(target)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {page.content_type}\r\nContent-Length: {len(page.body)}\r\n\r\n"
        self._transport.write(head.encode() + page.body)
