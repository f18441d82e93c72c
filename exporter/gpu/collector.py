"""Collector: every source of this exporter over time. In: a request with a budget. Out: the page of /gpu.

A card that was there once and that its source does not show any more is down, not forgotten; one whose source is gone
is unseen, and may be well. Nothing else outlives a reading. Counters that a new worker would start anew are kept here.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from exporter.cards import CardPage, Gpus
from exporter.fleet import Fleet
from exporter.gpu.join import Claim, claims, strangers
from exporter.gpu.page import MOST_CARDS, PageReader
from exporter.gpu.reading import Card, Failure, Reading, Snapshot
from exporter.gpu.remarks import WITHOUT_CARDS, by_replica, comments
from exporter.gpu.render import Told, gpu_page
from exporter.gpu.sources import DRIVER, PAGE_SOURCES
from exporter.gpu.worker import Worker
from exporter.scrape import Scraper
from exporter.watch import AbandonedError

__all__ = ["Collector"]

_log = logging.getLogger(__name__)
_MOST_XIDS = 4096  # by card and number
_GRACE = 0.1  # seconds; a look that is out of time says so itself, of each source


class _Source(Protocol):
    """What can be asked."""

    async def read(self, budget: float) -> Snapshot:
        """Answer within the budget, whatever happens."""

    async def close(self) -> None:
        """Let go of what it holds."""


@dataclass(slots=True, kw_only=True)
class _Watched:
    """A source and what is known of it over time."""

    name: str
    origin: str
    source: _Source
    dropped: int = 0
    succeeded_at: float | None = None
    failure: Failure | None = None
    known: dict[Card, Reading] = field(default_factory=dict)
    lost: dict[Card, frozenset[Failure]] = field(default_factory=dict)
    xids: Counter[tuple[str, int]] = field(default_factory=Counter)
    xid_times: dict[tuple[str, int], float] = field(default_factory=dict)

    async def look(self, budget: float) -> Told:
        """Ask, and add what is remembered."""
        start = time.perf_counter()
        try:
            snapshot = await self.source.read(budget)
        except Exception:  # noqa: BLE001 - one source must not cost the others' cards
            _log.exception("GPU source %s %s failed in an unforeseen way", self.name, self.origin)
            snapshot = Snapshot(failure=Failure.CRASHED, sentence="reading failed in an unforeseen way: see the log")
        self._log_change(snapshot)
        self._remember(snapshot)
        return Told(
            source=self.name,
            origin=self.origin,
            readings=(*snapshot.readings, *self._missed(snapshot)),
            failure=snapshot.failure,
            sentence=snapshot.sentence,
            notes=snapshot.notes,
            seconds=time.perf_counter() - start,
            succeeded_at=self.succeeded_at,
            dropped=self.dropped,
            xids=dict(self.xids),
            xid_times=dict(self.xid_times),
        )

    def _log_change(self, snapshot: Snapshot) -> None:
        """Log what became of the source where that is news, not with each look."""
        before, self.failure = self.failure, snapshot.failure
        title = f"{self.name} {self.origin}".strip()
        if snapshot.failure is None and before is not None:
            _log.info("GPU source %s tells of its cards again", title)
        elif snapshot.failure is not before:
            calm = self.name == DRIVER and not self.known and snapshot.failure in WITHOUT_CARDS
            _log.log(logging.INFO if calm else logging.WARNING, "GPU source %s: %s", title, snapshot.sentence)

    def _remember(self, snapshot: Snapshot) -> None:
        self.dropped += snapshot.dropped
        if snapshot.failure is None:
            self.succeeded_at = time.time()
        for reading in snapshot.readings:
            if reading.up and not reading.card.partition:
                self.known.pop(reading.card, None)
                self.known[reading.card] = reading
        while len(self.known) > MOST_CARDS:  # whoever names its cards anew each time has lost none of the old ones
            del self.known[next(iter(self.known))]
        for xid in snapshot.xids:
            self.xids[xid.gpu, xid.xid] += xid.count
            self.xid_times[xid.gpu, xid.xid] = xid.at
        while len(self.xids) > _MOST_XIDS:  # a page that makes them up; broken cards repeat a few
            oldest = next(iter(self.xids))
            del self.xids[oldest], self.xid_times[oldest]

    def _missed(self, snapshot: Snapshot) -> Iterable[Reading]:
        """Tell of cards that were there. Parts of a card come and go on purpose, so only whole cards are missed.

        A card that was lost before its source fell silent stays lost: a driver's session may start anew because of it.
        """
        here = {reading.card for reading in snapshot.readings}
        # A driver that finds no card at all has lost them; a page without any may be its exporter's own trouble.
        if snapshot.failure is None or (self.name == DRIVER and snapshot.failure is Failure.NO_GPU):
            self.lost = {reading.card: reading.failures for reading in snapshot.readings if not reading.up}
            self.lost |= {card: frozenset({Failure.LOST}) for card in self.known if card not in here}
        for card, known in self.known.items():
            if card not in here:
                failures = self.lost.get(card)
                yield Reading(
                    card=card,
                    facts=known.facts,
                    failures=failures or frozenset({Failure.UNSEEN}),
                    up=False,
                    seen=failures is not None,
                    sentence=f"{card.gpu}: the card is not there any more" if failures else "",
                    alias=known.alias,
                    holds=known.holds,
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What a look came to; `ran_out` tells that the time was over before a source answered."""

    page: str
    ran_out: bool


class Collector:
    """Answers the page; readers within `min_interval` seconds share one look.

    `remarks` are what the last look has to say to a person about the cards of each replica.
    """

    def __init__(self, scraper: Scraper, model_of: Callable[[str], str], min_interval: float) -> None:
        self._scraper = scraper
        self._model_of = model_of
        self._min_interval = min_interval
        self._fleet: Fleet | None = None
        self._watched: dict[tuple[str, CardPage | None], _Watched] = {}
        self.remarks: Mapping[str, tuple[str, ...]] = {}
        self._task: asyncio.Task[_Look] | None = None
        self._started = 0.0
        self._budget = 0.0
        self._closing: set[asyncio.Task[None]] = set()

    def use(self, fleet: Fleet) -> None:
        """Take a fleet into use; sources that stay keep what they know."""
        self._fleet = fleet
        self.remarks = {}
        before, self._watched = self._watched, {}
        for key in _wanted(fleet.gpus):
            self._watched[key] = before.pop(key) if key in before else self._made(*key)
        for watched in before.values():
            closing = asyncio.create_task(watched.source.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def page(self, budget: float) -> str:
        """Answer the page within `budget` seconds.

        A look that ran out of time is not shared with who has more of it: an impatient reader makes no card look lost.
        """
        now = asyncio.get_running_loop().time()
        if self._task is None or (self._task.done() and self._is_over(self._task, now, budget)):
            self._started, self._budget = now, budget
            self._task = asyncio.create_task(self._look(budget))
        task, tried = self._task, self._budget
        await asyncio.wait({task}, timeout=budget + _GRACE)
        if task.cancelled():
            raise AbandonedError("the look at the cards was abandoned: the exporter is stopping")
        if not task.done():
            raise AbandonedError("another reader's look still waits for a source, longer than this reader does")
        left = now + budget - asyncio.get_running_loop().time()
        return await self.page(left) if task.result().ran_out and left > tried else task.result().page

    def _is_over(self, done: "asyncio.Task[_Look]", now: float, budget: float) -> bool:
        """Tell whether what came of a look is not to be shared with a reader who comes now."""
        if now - self._started >= self._min_interval or done.cancelled():
            return True
        return budget > self._budget and done.result().ran_out

    def abandon(self) -> None:
        """End a running look without a result; those who wait for it are told so."""
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """End every source."""
        await asyncio.gather(*self._closing, *(watched.source.close() for watched in self._watched.values()))

    async def _look(self, budget: float) -> "_Look":
        assert self._fleet is not None  # noqa: S101 - use() comes before the first request
        told = await asyncio.gather(*(watched.look(budget) for watched in self._watched.values()))
        found = tuple(strangers(self._fleet.replicas, _readings(told)))
        page = gpu_page(told, self._claims(told), comments(found, told, self._fleet.gpus))
        self.remarks = by_replica(found, told, self._fleet.gpus)
        return _Look(page=page, ran_out=any(each.failure is Failure.TIMEOUT for each in told))

    def _claims(self, told: Iterable[Told]) -> tuple[Claim, ...]:
        assert self._fleet is not None  # noqa: S101 - as above
        return claims(self._fleet.replicas, _readings(told), self._model_of)

    def _made(self, name: str, page: CardPage | None) -> _Watched:
        if page is None:
            return _Watched(name=name, origin="", source=Worker())
        reader = PageReader(PAGE_SOURCES[name], page, self._scraper)
        return _Watched(name=name, origin=page.url.partition("//")[2], source=reader)


def _wanted(gpus: Gpus) -> Iterable[tuple[str, CardPage | None]]:
    if gpus.nvml:
        yield DRIVER, None
    for name, pages in gpus.pages.items():
        for page in pages:
            yield name, page


def _readings(told: Iterable[Told]) -> list[Reading]:
    return [reading for each in told for reading in each.readings]
