"""The phone's web server: webhooks in, the page and its live updates out."""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path

from aiohttp import web

from simulator.phone.messages import RECEIVERS, PayloadError, parse_webhook, stored
from simulator.phone.store import Store

_FILES = {
    "/": ("page.html", "text/html"),
    "/phone.css": ("phone.css", "text/css"),
    "/phone.js": ("phone.js", "text/javascript"),
}
_LARGEST_BODY = 16 * 2**20  # a storm of alerts in one notification
_KEEP_ALIVE = 15.0  # seconds between two comments on an idle event stream


class Phone:
    """Receives, keeps and shows messages."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._listeners: set[asyncio.Event] = set()

    def application(self) -> web.Application:
        """Make the application."""
        app = web.Application(client_max_size=_LARGEST_BODY)
        app.router.add_post("/alertmanager/{receiver}", self._receive)
        app.router.add_get("/api/messages", self._list)
        app.router.add_delete("/api/messages", self._clear)
        app.router.add_get("/api/events", self._events)
        app.router.add_get("/-/healthy", self._healthy)
        for path in _FILES:
            app.router.add_get(path, self._file)
        return app

    async def _receive(self, request: web.Request) -> web.Response:
        receiver = request.match_info["receiver"]
        if receiver not in RECEIVERS:
            return _refuse(404, f"there is no receiver {receiver!r}; there are {', '.join(RECEIVERS)}")
        try:
            document = json.loads(await request.read())
            messages = parse_webhook(document, receiver=receiver, received_at=self._clock())
        except (ValueError, RecursionError) as error:
            return _refuse(400, f"the body is not JSON: {error}")
        except PayloadError as error:
            return _refuse(400, f"not an Alertmanager webhook: {error}")
        if self._store.add(messages):
            self._tell()
        return web.json_response({"received": len(messages)})

    async def _list(self, request: web.Request) -> web.Response:
        since = request.query.get("since", "0")
        try:
            after = float(since)
            int(after)  # neither nan nor inf
        except (ValueError, OverflowError):
            return _refuse(400, f"since: expected Unix seconds, got {since!r}")
        wanted = {key: request.query[key] for key in ("receiver", "alertname", "status") if key in request.query}
        unknown = [key for key in request.query if key not in (*wanted, "since")]
        if unknown:
            return _refuse(400, f"unknown filter {unknown[0]!r}; there are receiver, alertname, status, since")
        messages = [
            stored(message)
            for message in self._store.newest_first()
            if message.received_at >= after and all(getattr(message, key) == value for key, value in wanted.items())
        ]
        return web.json_response(messages)

    async def _clear(self, _request: web.Request) -> web.Response:
        self._store.clear()
        self._tell()
        return web.Response(status=204)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await response.prepare(request)
        news = asyncio.Event()
        self._listeners.add(news)
        try:
            await response.write(b"data: now\n\n")
            while True:
                try:
                    await asyncio.wait_for(news.wait(), _KEEP_ALIVE)
                except TimeoutError:
                    await response.write(b": still here\n\n")
                    continue
                news.clear()
                await response.write(b"data: news\n\n")
        finally:
            self._listeners.discard(news)

    def _tell(self) -> None:
        for news in self._listeners:
            news.set()

    async def _healthy(self, _request: web.Request) -> web.Response:
        return web.Response(text="The phone is healthy.\n")

    async def _file(self, request: web.Request) -> web.Response:
        name, content_type = _FILES[request.path]
        text = Path(__file__).with_name(name).read_text(encoding="utf-8")
        policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:"
        return web.Response(text=text, content_type=content_type, headers={"Content-Security-Policy": policy})


def _refuse(status: int, sentence: str) -> web.Response:
    return web.json_response({"error": sentence}, status=status)
