"""Front: one connection of a reader, before anybody knows who it is. In: bytes. Out: requests whose heads are bounded.

uvicorn takes heads of any size and waits for them for ever: one stranger with a hundred megabytes of header lines would
cost us two gigabytes of memory. A probe as Prometheus writes it is answered here, all else by the application.
"""

import logging
import re
from asyncio import TimerHandle, Transport
from typing import TYPE_CHECKING, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from exporter.exchange import Exchange
from exporter.probe import TIMEOUT, budget
from exporter.service import Service
from exporter.watch import Watch

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["Front", "is_news"]

_HEAD_BYTES = 2**16
_HEAD_SECONDS = 30.0
_TIMEOUT = TIMEOUT.encode()
_OF_STRANGERS = ("Invalid HTTP request received.", "Unsupported upgrade request.", "No supported WebSocket library")
_PROBE = re.compile(rb"/probe\?target=([A-Za-z0-9._-]+)")


def is_news(record: logging.LogRecord) -> bool:
    """Tell whether a record of uvicorn's is worth a line.

    A reader who leaves while uvloop closes the connection makes uvicorn report a crash of the application. What
    strangers send that is no request is answered, and would fill the log.
    """
    if str(record.msg).startswith(_OF_STRANGERS):
        return False
    error = record.exc_info[1] if record.exc_info else None
    return not (isinstance(error, RuntimeError) and str(error).endswith("the handler is closed"))


class Front(HttpToolsProtocol):
    """uvicorn's protocol, but the head of a request has a size and a time in which it has to come."""

    _unread = 0
    _is_in_head = True
    _is_in_body = False
    _deadline: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override] # as in uvicorn
        """Wait for the first request for a while only."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless the head is too large."""
        self._unread += len(data)
        if self._unread > _HEAD_BYTES and not self._is_in_body:
            self.send_400_response(f"The head of a request can have {_HEAD_BYTES} bytes.\n")
            return
        super().data_received(data)
        if self._is_in_head and self._deadline is None:
            self._expect_head()

    def on_message_begin(self) -> None:
        """Note that a request begins, and let its head have its time."""
        self._stop_waiting()
        self._is_in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Note that the head is there, and answer; a body is read only where it is wanted."""
        self._stop_waiting()
        self._is_in_head = False
        self._is_in_body = True
        asked = self._probe()
        if asked is None:
            super().on_headers_complete()
        else:
            self._answer(*asked)

    def on_message_complete(self) -> None:
        """Note that the next bytes are those of another head."""
        self._unread = 0
        self._is_in_body = False
        super().on_message_complete()

    def _probe(self) -> tuple[Service, Watch] | None:
        """Answer whom the request is about, None if it is not a plain one for a page, or has to be let in first."""
        plain = _PROBE.fullmatch(self.url)
        if plain is None or self.parser.get_method() != b"GET" or self.expect_100_continue:
            return None
        if self.parser.should_upgrade() or self.parser.get_http_version() != "1.1":
            return None
        state = cast("FastAPI", self.config.app).state
        if state.is_guarded:
            return None
        watch = state.service.watches.get(plain[1].decode())
        return None if watch is None else (state.service, watch)

    def _answer(self, service: Service, watch: Watch) -> None:
        """Have a probe answered, after the requests before it on this connection; as uvicorn does with any request."""
        header = next((value.decode("latin-1") for name, value in self.headers if name == _TIMEOUT), None)
        exchange = Exchange(
            self.transport,
            self.flow,
            self.on_response_complete,
            service=service,
            watch=watch,
            budget=budget(header, service.options.timeout),
            keep_alive=self.parser.should_keep_alive(),
        )
        before, self.cycle = self.cycle, cast("RequestResponseCycle", exchange)
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def _expect_head(self) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(_HEAD_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
