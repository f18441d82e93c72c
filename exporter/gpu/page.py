"""Page: another exporter's page as a source. In: its address, a budget. Out: a `Snapshot`, in time, always.

dcgm-exporter repeats its last good numbers for ever when the service behind it is gone, and calls itself healthy. A
page of running cards never stays as it is: energy and power move. So one that did not change for minutes is not used.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from exporter.failures import Reason, ScrapeError
from exporter.gpu.reading import Failure, Snapshot, Xid
from exporter.parse import Page, Parser
from exporter.scrape import Origin, Scraper

__all__ = ["MOST_CARDS", "PageReader", "PageSource"]

_FRESH = 150.0
"""Seconds; dcgm-exporter refreshes every 30 s by default, so this is five refreshes missed."""
MOST_CARDS = 1024
"""Cards and parts of cards; a host has some dozens."""
_UNREACHED = frozenset({Reason.DNS, Reason.REFUSED, Reason.RESET, Reason.TLS})


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSource:
    """How to read one exporter's pages; `last_xids` answers the last Xid by card where the page tells only that."""

    name: str
    read: Callable[[Page], Snapshot]
    last_xids: Callable[[Page], dict[str, int]] | None = None


class PageReader:
    """Reads one page again and again."""

    def __init__(self, source: PageSource, url: str, scraper: Scraper, clock: Callable[[], float] = time.time) -> None:
        self._source = source
        self._origin = Origin(url=url, keep_alive=False)
        self._scraper = scraper
        self._clock = clock
        self._parser = Parser()
        self._last: Page | None = None
        self._changed_at = 0.0
        self._xids: dict[str, int] = {}

    async def read(self, budget: float) -> Snapshot:
        """Fetch and read the page."""
        deadline = asyncio.get_running_loop().time() + budget
        try:
            answer = await self._scraper.get(self._origin, "/metrics", deadline)
            page = self._parser.parse(answer.body, openmetrics="openmetrics" in answer.content_type)
        except ScrapeError as error:
            return Snapshot(failure=_failure(error), sentence=str(error))
        now = self._clock()
        if self._last is None or (page.series, page.values) != (self._last.series, self._last.values):
            self._last, self._changed_at = page, now
        if now - self._changed_at > _FRESH:
            sentence = (
                f"no number on the page has changed for {now - self._changed_at:.0f} s: is the service behind it gone?"
            )
            return Snapshot(failure=Failure.STALE, sentence=sentence)
        told = self._source.read(page)
        if not told.readings:
            return Snapshot(
                failure=Failure.NO_GPU, sentence=f"the page has no card in the names of {self._source.name}"
            )
        if len(told.readings) > MOST_CARDS:
            sentence = f"the page tells of {len(told.readings)} cards, more than {MOST_CARDS}: is it one host's?"
            return Snapshot(failure=Failure.UNUSABLE, sentence=sentence)
        return Snapshot(readings=told.readings, dropped=told.dropped, xids=self._new_xids(page, now))

    async def close(self) -> None:
        """Hold nothing: connections are the scraper's."""

    def _new_xids(self, page: Page, now: float) -> tuple[Xid, ...]:
        """Count a change of the last Xid as one error; what was there at first happened before we looked."""
        if self._source.last_xids is None:
            return ()
        before, self._xids = self._xids, self._source.last_xids(page)
        new = Counter((gpu, xid) for gpu, xid in self._xids.items() if xid and gpu in before and before[gpu] != xid)
        return tuple(Xid(gpu=gpu, xid=xid, count=count, at=now) for (gpu, xid), count in new.items())


def _failure(error: ScrapeError) -> Failure:
    if error.reason is Reason.TIMEOUT:
        return Failure.TIMEOUT
    return Failure.UNREACHABLE if error.reason in _UNREACHED else Failure.UNUSABLE
