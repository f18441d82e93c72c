"""Front: one connection of a reader, before anybody knows who it is. In: bytes. Out: requests whose heads are bounded.

uvicorn takes heads of any size and waits for them for ever: one stranger with a hundred megabytes of header lines would
cost us two gigabytes of memory.
"""

import logging
from asyncio import TimerHandle, Transport

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["Front", "is_news"]

_HEAD_BYTES = 2**16
_HEAD_SECONDS = 30.0


def is_news(record: logging.LogRecord) -> bool:
    """Tell whether a record of uvicorn's is worth a line.

    A reader who leaves while uvloop closes the connection makes uvicorn report a crash of the application.
    """
    error = record.exc_info[1] if record.exc_info else None
    return not (isinstance(error, RuntimeError) and str(error).endswith("the handler is closed"))


class Front(HttpToolsProtocol):
    """uvicorn's protocol, but the head of a request has a size and a time in which it has to come."""

    _unread = 0
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

    def on_message_begin(self) -> None:
        """Note that a request begins."""
        self._expect_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Note that the head is there; a body is read only where it is wanted."""
        self._stop_waiting()
        self._is_in_body = True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note that the next bytes are those of another head."""
        self._unread = 0
        self._is_in_body = False
        super().on_message_complete()

    def _expect_head(self) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(_HEAD_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
