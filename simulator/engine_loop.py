"""The engine in real time: it sleeps through the steps of the model, books them on the page, and feeds the streams."""

import asyncio
from dataclasses import replace
from typing import Protocol

from simulator.engine import Engine
from simulator.sequence import Finished, Gauges, Rejection, Request, StepReport, Token

_LAG_LIMIT = 1.0  # seconds; a process that slept longer does not make up for lost steps

Stream = asyncio.Queue[Token | Finished]


class Page(Protocol):
    """Keeps the metrics of one engine in the dialect of its kind."""

    def record(self, report: StepReport) -> None:
        """Book one step."""

    def publish(self, gauges: Gauges) -> None:
        """Show the state of an engine that fell idle."""

    def rejected(self, reason: Rejection) -> None:
        """Count a refused request."""

    def answered(self, handler: str, status: int, seconds: float, request_bytes: int) -> None:
        """Count an answer of the HTTP server."""

    def render(self, accept: str, now: Gauges) -> tuple[bytes, str]:
        """Write the page; give its body and content type."""
        ...


class EngineLoop:
    """Runs one engine from its start until it is cancelled."""

    def __init__(self, engine: Engine, page: Page) -> None:
        self.engine = engine
        self.page = page
        self.stale_when_idle = False
        self._streams: dict[str, Stream] = {}
        self._wake = asyncio.Event()
        self._moving = asyncio.Event()
        self._moving.set()
        self._published = engine.gauges()
        self._clock = asyncio.get_running_loop().time

    @property
    def hung(self) -> bool:
        """Whether the engine makes no step."""
        return not self._moving.is_set()

    def hang(self) -> None:
        """Stop in the middle of whatever is going on."""
        self._moving.clear()

    def go_on(self) -> None:
        """End a hang."""
        self._moving.set()

    def gauges(self) -> Gauges:
        """Give the state as somebody who asks the engine sees it: frozen while it hangs."""
        return self._published if self.hung else self.engine.gauges()

    def submit(self, request: Request) -> Stream | Rejection:
        """Queue a request; give the stream of its tokens, or the reason why not."""
        rejection = self.engine.submit(request, self._clock())
        if rejection is not None:
            self.page.rejected(rejection)
            return rejection
        stream: Stream = asyncio.Queue()
        self._streams[request.request_id] = stream
        self._wake.set()
        return stream

    def abort(self, request_id: str) -> None:
        """Forget a request, if it has not ended."""
        self.engine.abort(request_id)
        self._streams.pop(request_id, None)
        self._wake.set()

    async def run(self) -> None:
        """Make steps for ever."""
        now = self._clock()
        while True:
            await self._moving.wait()
            duration = self.engine.begin_step(now)
            if duration is None:
                if not self.stale_when_idle:
                    self._published = self.engine.gauges()
                    self.page.publish(self._published)
                self._wake.clear()
                await self._wake.wait()
                now = self._clock()
                continue
            # The planned end, not the moment of waking, is the time of the step: what the engine measures is then the
            # model's own and does not grow with the load of this machine.
            now += duration
            await asyncio.sleep(now - self._clock())
            if self.hung:
                await self._moving.wait()
            now = max(now, self._clock() - _LAG_LIMIT)
            self._deliver(self.engine.finish_step(now))

    def _deliver(self, report: StepReport) -> None:
        if self.stale_when_idle and report.gauges.running + report.gauges.waiting == 0:
            report = replace(report, gauges=self._published)
        self._published = report.gauges
        self.page.record(report)
        for token in report.tokens:
            self._streams[token.sequence.request.request_id].put_nowait(token)
        for end in report.finished:
            self._streams.pop(end.sequence.request.request_id).put_nowait(end)
