"""Exchange: a probe that is answered without ASGI. In: a watch. Out: a response on the reader's connection.

It stands where uvicorn has a request and response of its own making: those, and FastAPI behind them, cost a third of a
probe, and Prometheus asks the same question each time (bench/probe.py). Whoever asks otherwise is answered by FastAPI.
"""

import asyncio
import logging
from collections.abc import Callable

from uvicorn.protocols.http.flow_control import FlowControl

from exporter.expose import CONTENT_TYPE
from exporter.service import Service
from exporter.watch import AbandonedError, Watch

__all__ = ["Exchange"]

_SENTENCE = "text/plain; charset=utf-8"
_log = logging.getLogger(__name__)


class Exchange:
    """A request for a page. What has no underscore in front is what uvicorn follows a request by."""

    def __init__(  # noqa: PLR0913 - what an answer depends on
        self,
        transport: asyncio.Transport,
        flow: FlowControl,
        on_response: Callable[[], None],
        *,
        service: Service,
        watch: Watch,
        budget: float,
        keep_alive: bool,
    ) -> None:
        """Stand for a request on this connection; `budget` in seconds."""
        self._transport = transport
        self._flow = flow
        self._on_response = on_response
        self._service = service
        self._watch = watch
        self._budget = budget
        self.keep_alive = keep_alive
        self.disconnected = False
        self.response_complete = False
        self.more_body = True
        self.body = bytearray()
        self.message_event = asyncio.Event()

    async def run_asgi(self, _application: object) -> None:
        """Answer the page, or why there is none."""
        status, content_type, text = await self._answer()
        if self._flow.write_paused and not self._transport.is_closing():
            await self._flow.drain()
        if self._transport.is_closing():  # of several requests on a connection, uvicorn tells the last that it is lost
            return
        body = text.encode()
        end = "\r\n" if self.keep_alive else "\r\nconnection: close\r\n"
        head = f"HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {len(body)}{end}\r\n"
        self._transport.writelines((head.encode(), body))
        self.response_complete = True
        if not self.keep_alive:
            self._transport.close()
        self._on_response()

    async def _answer(self) -> tuple[str, str, str]:
        try:
            return "200 OK", CONTENT_TYPE, (await self._service.look(self._watch, self._budget)).page
        except AbandonedError as error:
            return "503 Service Unavailable", _SENTENCE, f"{error}\n"
        except Exception:  # noqa: BLE001 - as uvicorn does; a reader must not wait for ever
            _log.exception("a probe of %s was answered 500", self._watch.replica.name)
            return "500 Internal Server Error", _SENTENCE, "Internal Server Error"
