"""A server that stands for PagerDuty, Slack and webhooks: takes whatever Alertmanager posts and keeps it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, Queue
from threading import Thread
from typing import Any

import pytest


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One POST."""

    path: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Where it listens, and what came in."""

    url: str
    messages: "Queue[Message]"

    def next(self, seconds: float = 15) -> Message:
        """Wait for the next message."""
        try:
            return self.messages.get(timeout=seconds)
        except Empty:
            pytest.fail(f"Alertmanager sent nothing to {self.url} within {seconds:g} s")


@contextmanager
def listening() -> Iterator[Listener]:
    """Listen on a free loopback port."""
    messages: Queue[Message] = Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            messages.put(Message(path=self.path, body=body))
            answer = b'{"status": "success"}' if self.path == "/pagerduty" else b"ok"
            self.send_response(202 if self.path == "/pagerduty" else 200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Listener(url=f"http://127.0.0.1:{server.server_port}", messages=messages)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
