"""The engines' side: one process that is a thousand replicas, each on a port of its own.

In: a page and a number of replicas. Out: the ports, as one line of JSON; then pages that grow, `/version`, and at
`/served` how many pages were asked for. It does the least a server can do, so that others' work is what is measured.
"""

import argparse
import asyncio
import json
import socket
from dataclasses import dataclass
from pathlib import Path

from bench.rig.pages import CAPTURED, growing

_STEPS = 16
_END_OF_HEAD = b"\r\n\r\n"


@dataclass(slots=True)
class _Answers:
    """Ready-made answers, and how many pages were handed out."""

    pages: list[bytes]
    served: int = 0

    def to(self, path: bytes) -> bytes:
        if path.startswith(b"/metrics"):
            self.served += 1
            return self.pages[self.served % len(self.pages)]
        if path == b"/served":
            return _answer(str(self.served).encode(), "text/plain")
        if path == b"/version":
            return _answer(b'{"version":"0.32.0"}', "application/json")
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


class _Connection(asyncio.Protocol):
    """One connection, kept alive; heads without bodies only."""

    def __init__(self, answers: _Answers) -> None:
        self._answers = answers
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        *heads, self._received = (self._received + data).split(_END_OF_HEAD)
        for head in heads:
            if self._transport is not None:
                self._transport.write(self._answers.to(head.split(b" ", 2)[1]))


def _answer(body: bytes, content_type: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def _serve(page: str, replicas: int) -> None:
    content_type = "text/plain; version=0.0.4; charset=utf-8"
    answers = _Answers(pages=[_answer(body, content_type) for body in growing(page, _STEPS)])
    loop = asyncio.get_running_loop()
    sockets = [socket.create_server(("127.0.0.1", 0), backlog=16) for _ in range(replicas)]
    for one in sockets:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await loop.create_server(lambda: _Connection(answers), sock=one)
    print(json.dumps([one.getsockname()[1] for one in sockets]), flush=True)
    await asyncio.Event().wait()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.rig.upstream", description=__doc__)
    parser.add_argument("--page", type=Path, default=CAPTURED, help="default: the captured vLLM page")
    parser.add_argument("--replicas", type=int, default=1, help="default: %(default)s")
    return parser


if __name__ == "__main__":
    options = _parser().parse_args()
    asyncio.run(_serve(options.page.read_text(encoding="utf-8"), options.replicas))
