"""The HTTP surface of one replica: OpenAI's endpoints, /metrics and what its engine has beside them."""

import asyncio
import json
import random
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from aiohttp import web

from simulator.completions import BadRequestError, Completion, parse_completion
from simulator.config import EngineKind, Model
from simulator.dialect import DONE, Dialect, Exchange, event, token_frame, usage, word
from simulator.engine_loop import EngineLoop, Stream
from simulator.kv_cache import block_hashes
from simulator.sequence import Finished, Outcome, Rejection, Request

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_OPEN_PATHS = {
    EngineKind.VLLM: ("/metrics", "/health", "/ping", "/version"),
    EngineKind.LLAMA_SERVER: ("/health", "/v1/health"),
}
_LATE_REJECTIONS = 0.3  # vLLM has sent its 200 before the engine refuses; the share seen on a real one


@dataclass(slots=True, kw_only=True)
class Switches:
    """What faults change on the HTTP surface."""

    loading: bool = False
    answers_metrics: asyncio.Event = field(default_factory=asyncio.Event)
    renamed: tuple[str, str] | None = None


class Surface:
    """Serves one engine loop in one dialect."""

    def __init__(self, model: Model, loop: EngineLoop, dialect: Dialect, *, seed: int) -> None:
        self.model = model
        self.loop = loop
        self.dialect = dialect
        self.switches = Switches()
        self.switches.answers_metrics.set()
        self.started = time.monotonic()
        self._random = random.Random(seed)  # noqa: S311 - a model of chance, not a secret
        self._number = 0

    def application(self, more: dict[str, Handler]) -> web.Application:
        """Make the application, with the engine's own GET endpoints in `more`."""
        app = web.Application(middlewares=[self._gate], client_max_size=64 * 2**20)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_post("/v1/completions", self._complete)
        for path, handler in more.items():
            app.router.add_get(path, handler)
        return app

    def error(self, status: int, message: str) -> web.Response:
        """Answer with an error in the engine's shape."""
        return web.json_response(self.dialect.error(status, message), status=status)

    @web.middleware
    async def _gate(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self.switches.loading:
            return self.error(503, "Loading model")  # llama-server says so before it looks at the key
        key = self.model.api_key
        if key and request.path not in _OPEN_PATHS[self.model.engine]:
            given = request.headers.get("Authorization", "").removeprefix("Bearer ")
            if key not in (given, request.headers.get("X-Api-Key")):
                return self.error(401, "Invalid API Key")
        try:
            return await handler(request)
        except web.HTTPNotFound:
            return self.error(404, "File Not Found")

    async def _metrics(self, request: web.Request) -> web.Response:
        if not self.model.metrics:
            return self.error(501, "This server does not support metrics endpoint. Start it with `--metrics`")
        await self.switches.answers_metrics.wait()
        body, content_type = self.loop.page.render(request.headers.get("Accept", ""), self.loop.gauges())
        if self.switches.renamed:
            body = rename_family(body.decode(), *self.switches.renamed).encode()
        headers = {"Content-Type": content_type}
        if self.model.engine is EngineKind.LLAMA_SERVER:
            headers["Process-Start-Time-Unix"] = str(int(self.started * 1e6))  # not Unix time, as in the original
        response = web.Response(body=body, headers=headers)
        response.enable_compression()
        return response

    async def _models(self, _request: web.Request) -> web.Response:
        owner = "vllm" if self.model.engine is EngineKind.VLLM else "llamacpp"
        entry = {
            "id": self.model.name,
            "object": "model",
            "created": int(time.time()),
            "owned_by": owner,
            "max_model_len": self.model.max_model_len,
        }
        return web.json_response({"object": "list", "data": [entry]})

    async def _complete(self, http: web.Request) -> web.StreamResponse:
        began = time.monotonic()
        body = await http.read()
        status = 200
        try:
            response = await self._answer(http, body)
            status = response.status
        finally:
            self.loop.page.answered(http.path, status, time.monotonic() - began, len(body))
        return response

    async def _answer(self, http: web.Request, body: bytes) -> web.StreamResponse:
        chat = http.path.endswith("/chat/completions")
        try:
            wish = parse_completion(body, chat=chat)
        except BadRequestError as error:
            return self.error(400, str(error))
        if wish.model not in (None, self.model.name) and self.model.engine is EngineKind.VLLM:
            return self.error(404, f"The model `{wish.model}` does not exist.")
        problem = self.dialect.too_long(len(wish.words), wish.max_tokens, self.model.max_model_len)
        if problem:
            return self.error(400, problem)
        request = self._request(wish)
        exchange = Exchange(
            answer_id=f"{'chatcmpl' if chat else 'cmpl'}-{request.request_id}",
            created=int(time.time()),
            model=self.model.name,
            chat=chat,
            include_usage=wish.include_usage,
        )
        stream = self.loop.submit(request)
        if isinstance(stream, Rejection):
            return await self._reject(http, wish)
        try:
            if wish.stream:
                return await self._stream(http, exchange, stream)
            return await self._whole(exchange, stream)
        finally:
            self.loop.abort(request.request_id)  # does nothing when it has ended; else the client has gone

    def _request(self, wish: Completion) -> Request:
        self._number += 1
        room = self.model.max_model_len - len(wish.words)
        most = min(wish.max_tokens or room, room)
        drawn = max(1, round(self._random.gammavariate(2, self.model.answer_tokens / 2)))
        return Request(
            request_id=f"{self._number:08x}",
            prompt_tokens=len(wish.words),
            answer_tokens=most if wish.ignore_eos else drawn,
            max_tokens=most,
            prefix=block_hashes(wish.words, self.model.limits.block_size),
        )

    async def _reject(self, http: web.Request, wish: Completion) -> web.StreamResponse:
        error = self.dialect.error(
            self.dialect.rejection_status, "The server's request queue is full. Try again later."
        )
        late = wish.stream and self.model.engine is EngineKind.VLLM and self._random.random() < _LATE_REJECTIONS
        if not late:
            return web.json_response(error, status=self.dialect.rejection_status)
        response = await _open_stream(http)
        await response.write(event(error) + DONE)
        return response

    async def _stream(self, http: web.Request, exchange: Exchange, stream: Stream) -> web.StreamResponse:
        item = await stream.get()
        response = await _open_stream(http)
        before, after = token_frame(exchange)
        opening = self.dialect.opening(exchange)
        while not isinstance(item, Finished):
            await response.write(opening + before + word(item.index).encode() + after)
            opening = b""
            item = await stream.get()
        await response.write(opening + self.dialect.ending(exchange, item.sequence, item.outcome))
        return response

    async def _whole(self, exchange: Exchange, stream: Stream) -> web.Response:
        words: list[str] = []
        while not isinstance(item := await stream.get(), Finished):
            words.append(word(item.index))
        if item.outcome is Outcome.ERROR:
            return self.error(500, "The engine failed while it worked on the request.")
        more = {"usage": usage(item.sequence), **self.dialect.extras(item.sequence)}
        return web.json_response(exchange.whole("".join(words), item.outcome.value, **more))


async def _open_stream(http: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
    )
    await response.prepare(http)
    return response


def rename_family(page: str, old: str, new: str) -> str:
    """Give a family another name, with all its series, as an upgrade would."""
    old, new = old.removesuffix("_total"), new.removesuffix("_total")
    suffix = r"(?=(?:_total|_created|_bucket|_count|_sum)?[ {])"
    return re.sub(rf"(?m)^((?:# (?:HELP|TYPE) )?){re.escape(old)}{suffix}", rf"\g<1>{new}", page)


def families(page: str) -> list[str]:
    """List the families of a page."""
    return re.findall(r"(?m)^# TYPE (\S+)", page)


def json_body(document: object) -> web.Response:
    """Answer with JSON."""
    return web.Response(text=json.dumps(document, separators=(",", ":")), content_type="application/json")
