"""The load generator: open loop, so that a slow fleet does not slow its clients down.

In: the traffic of the configuration and the addresses of the replicas. Out: requests, and a line each ten seconds.
"""

import asyncio
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from http import HTTPStatus

import aiohttp

from simulator.balancer import Balancer
from simulator.config import Traffic
from simulator.traffic import arrivals, prompt

_CONNECT_SECONDS = 2.0
_REJECTIONS = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


class Ending(Enum):
    """How a request ended, as its client saw it."""

    FINISHED = auto()
    REJECTED = auto()
    FAILED = auto()
    UNREACHABLE = auto()


@dataclass(slots=True, kw_only=True)
class Tally:
    """What happened since the last summary."""

    sent: int = 0
    finished: int = 0
    rejected: int = 0
    failed: int = 0
    first_tokens: list[float] = field(default_factory=list)

    def count(self, ending: Ending) -> None:
        """Count one request that is over."""
        if ending is Ending.FINISHED:
            self.finished += 1
            return
        self.failed += 1
        if ending is Ending.REJECTED:
            self.rejected += 1

    def __str__(self) -> str:
        """Write the summary of one model."""
        late = f"{percentile(self.first_tokens, 0.95):.2f} s" if self.first_tokens else "-"
        rejected = f" ({self.rejected} rejected)" if self.rejected else ""
        return f"{self.sent} sent, {self.finished} finished, {self.failed} failed{rejected}, TTFT p95 {late}"


class LoadGenerator:
    """Sends the traffic of one model to its replicas."""

    def __init__(
        self, traffic: Traffic, replicas: Mapping[str, str], session: aiohttp.ClientSession, *, seed: int, factor: float
    ) -> None:
        self.tally = Tally()
        self._traffic = traffic
        self._urls = replicas
        self._session = session
        self._chance = random.Random(f"{seed}/{traffic.model}")  # noqa: S311 - a model of chance, not a secret
        self._balancer = Balancer(tuple(replicas), self._chance)
        self._factor = factor
        self._requests: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Send requests for ever; on cancellation the ones in flight are dropped."""
        began = time.monotonic()
        try:
            for number, moment in enumerate(arrivals(self._traffic, self._chance, factor=self._factor)):
                await asyncio.sleep(began + moment - time.monotonic())
                task = asyncio.create_task(self._request(number))
                self._requests.add(task)
                task.add_done_callback(self._requests.discard)
        finally:
            for task in tuple(self._requests):
                task.cancel()
            await asyncio.gather(*self._requests, return_exceptions=True)

    def take_tally(self) -> Tally:
        """Give the counts so far and start anew."""
        tally, self.tally = self.tally, Tally()
        return tally

    async def _request(self, number: int) -> None:
        self.tally.sent += 1
        system, user = prompt(self._traffic, self._chance, number)
        body = {
            "model": self._traffic.model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            "max_tokens": self._traffic.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        tried: set[str] = set()
        ending = Ending.UNREACHABLE
        while ending is Ending.UNREACHABLE:
            name = self._balancer.choose(time.monotonic(), tried)
            if name is None:
                break
            tried.add(name)
            ending = await self._attempt(name, body)
        self.tally.count(ending)

    async def _attempt(self, name: str, body: Mapping[str, object]) -> Ending:
        self._balancer.sent(name)
        try:
            async with asyncio.timeout(self._traffic.timeout):
                ending = await self._exchange(name, body)
        except TimeoutError:
            return Ending.FAILED
        except aiohttp.ClientError:
            self._balancer.unreachable(name, time.monotonic())
            return Ending.UNREACHABLE
        finally:
            self._balancer.ended(name)
        if ending is Ending.UNREACHABLE:
            self._balancer.unreachable(name, time.monotonic())
            return ending
        self._balancer.answered(name)
        if ending is Ending.REJECTED:
            self._balancer.rejected(name, time.monotonic())
        return ending

    async def _exchange(self, name: str, body: Mapping[str, object]) -> Ending:
        began = time.monotonic()
        async with self._session.post(f"{self._urls[name]}/v1/chat/completions", json=body) as response:
            if response.status != HTTPStatus.OK:
                text = await response.text()
                loading = response.status == HTTPStatus.SERVICE_UNAVAILABLE and "oading model" in text
                if loading:
                    return Ending.UNREACHABLE
                return Ending.REJECTED if response.status in _REJECTIONS else Ending.FAILED
            try:
                return await self._read(response, began)
            except aiohttp.ClientError:
                self._balancer.unreachable(name, time.monotonic())
                return Ending.FAILED  # tokens were on their way: a client cannot ask again

    async def _read(self, response: aiohttp.ClientResponse, began: float) -> Ending:
        first = True
        tail = b""
        async for chunk in response.content.iter_any():
            if b'{"error"' in chunk:
                return Ending.REJECTED if b'"code":503' in chunk else Ending.FAILED
            if first:
                self.tally.first_tokens.append(time.monotonic() - began)
                first = False
            tail = (tail + chunk)[-32:]
        return Ending.FINISHED if b"data: [DONE]" in tail else Ending.FAILED


def open_session() -> aiohttp.ClientSession:
    """Open the session that all generators share."""
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout)


def percentile(values: list[float], share: float) -> float:
    """Give the value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
