"""Connection: one HTTP/1.1 connection to an engine, kept alive. In: the bytes of a request. Out: a `Response`.

    ExchangeError          there was no response that can be used
      ClosedError          the connection ended before the head of one was complete
      CutError             it ended in the middle of a body
      MalformedError       what came is no HTTP; str() says why
      OversizeError        the body is larger than wanted

httptools reads the answers: the C parser (llhttp) that our server runs on too. A whole client library does more than a
scrape needs: with nothing between two fetches of 51 kB, one takes 0.03 ms of CPU here and 0.07 ms in aiohttp
(bench/fetch.py); between other work, with cold caches, it was a tenth of a whole probe (bench/probe.py).
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

__all__ = [
    "ClosedError",
    "Connection",
    "CutError",
    "ExchangeError",
    "MalformedError",
    "OversizeError",
    "Response",
]

_OVERHEAD = 2**16
"""Bytes that an engine may send at once beside those of a body: a head, the chunks' lengths, a trailer."""
_INTERIM = range(100, 200)
_BUFFER = memoryview(bytearray(2**18))
_TLS_ALERT = b"\x15\x03"
_IN_TLS = "TLS is spoken on this port: write https in url"


class ExchangeError(Exception):
    """There was no response that can be used."""


class ClosedError(ExchangeError):
    """The connection ended before the head of a response was complete; `is_unanswered` if nothing of it had come.

    `cause` is what ended it, where that is known.
    """

    def __init__(self, *, is_unanswered: bool, cause: Exception | None = None) -> None:
        super().__init__()
        self.is_unanswered = is_unanswered
        self.cause = cause


class CutError(ExchangeError):
    """The connection ended in the middle of a body."""


class MalformedError(ExchangeError):
    """What came is no HTTP."""


class OversizeError(ExchangeError):
    """The body is larger than wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A response; header names in lower case. Where the status is not 200, the body may be lacking.

    `framed` is false where only the end of the connection ended the body: it may be cut.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    framed: bool


class Connection(asyncio.BufferedProtocol):
    """One connection, for one exchange after the other. `idle_since` is its keeper's."""

    idle_since = 0.0

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Response] | None = None
        self._loop = asyncio.get_running_loop()
        self._parser = HttpResponseParser(self)
        # What servers of all kinds write, and browsers read: a bare LF, spaces and odd bytes in headers.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._is_kept = True
        self._expect(0)

    def _expect(self, limit: int) -> None:
        self._limit = limit
        self._status = 0
        self._headers: dict[str, str] = {}
        self._parts: list[bytes] = []
        self._size = 0
        self._overhead = 0
        self._is_headed = False
        self._is_complete = False

    @property
    def is_usable(self) -> bool:
        """Tell whether another request can be sent."""
        return self._is_kept and self._transport is not None and not self._transport.is_closing()

    async def ask(self, request: bytes, limit: int) -> Response:
        """Send a request and answer the response, or raise ExchangeError; `limit` is for its body as sent, bytes.

        Whoever is cancelled meanwhile leaves a closed connection behind.
        """
        if self._transport is None or self._transport.is_closing():
            raise ClosedError(is_unanswered=True)
        self._expect(limit)
        waiter: asyncio.Future[Response] = self._loop.create_future()
        self._waiter = waiter
        self._transport.write(request)
        is_answered = False
        try:
            response = await waiter
            is_answered = True  # whoever is cancelled as the answer comes does not get it, and keeps no connection
        finally:
            self._waiter = None
            self._parts = []  # a thousand idle connections would hold fifty megabytes
            if not (is_answered and self._is_complete and self._is_kept):
                self.close()
        return response

    def close(self) -> None:
        """Close the connection; what is still to come is not waited for."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one, but no subclass

    def get_buffer(self, _wanted: int) -> memoryview:
        """Lend the buffer that all connections share; what comes in is read before anybody else's."""
        return _BUFFER

    def buffer_updated(self, count: int) -> None:
        """Read a part of a response; bytes that nobody asked for end the connection."""
        if self._waiter is None or self._waiter.done():
            self.close()
            return
        self._overhead += count
        try:
            self._parser.feed_data(_BUFFER[:count])
        except HttpParserUpgrade:
            self._is_kept = False
        except HttpParserError as error:
            self._is_kept = False
            if not self._is_complete:
                self._fail(MalformedError(_IN_TLS if _BUFFER[:2] == _TLS_ALERT else str(error)))
                return
        if self._size > self._limit:
            self._fail(OversizeError)
        elif self._is_complete or (self._is_headed and self._status != HTTPStatus.OK):
            self._answer()
        elif self._overhead > _OVERHEAD:
            self._fail(MalformedError("too much that is no body"))

    def eof_received(self) -> None:
        """Take the end of what the engine sends as the end of the connection."""
        self._end(None)

    def connection_lost(self, error: Exception | None) -> None:
        """Tell who waits; a body without length ends here."""
        self._is_kept = False
        self._end(error)
        del self._parser  # it holds us

    # What httptools calls.

    def on_message_begin(self) -> None:
        """Begin with a head; after a whole response, nobody asked for another one."""
        if self._is_complete:
            self._is_kept = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; several of one name are one list."""
        if not self._is_headed:
            key, text = name.decode("latin-1").strip().lower(), value.decode("latin-1").strip()
            self._headers[key] = f"{self._headers[key]}, {text}" if key in self._headers else text

    def on_headers_complete(self) -> None:
        """Note the status, unless this is only about what is to come."""
        status = self._parser.get_status_code()
        if self._is_complete:
            return
        if status in _INTERIM and status != HTTPStatus.SWITCHING_PROTOCOLS:
            self._headers.clear()
            return
        self._status = status
        self._is_headed = True

    def on_body(self, part: bytes) -> None:
        """Keep a part of the body."""
        if not self._is_complete:
            self._parts.append(part)
            self._size += len(part)
            self._overhead = 0

    def on_message_complete(self) -> None:
        """Note that the response is whole, and whether another one may follow."""
        if self._is_headed and not self._is_complete:
            self._is_complete = True
            self._is_kept = self._parser.should_keep_alive()

    @property
    def _is_framed(self) -> bool:
        return "content-length" in self._headers or "chunked" in self._headers.get("transfer-encoding", "").lower()

    def _end(self, error: Exception | None) -> None:
        if not self._is_headed:
            self._fail(ClosedError(is_unanswered=not self._overhead, cause=error))
        elif self._is_framed or error is not None:
            self._fail(CutError)
        else:
            self._answer()

    def _answer(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            response = Response(status=self._status, headers=self._headers, body=body, framed=self._is_framed)
            self._waiter.set_result(response)

    def _fail(self, error: ExchangeError | type[ExchangeError]) -> None:
        self._is_kept = False
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
