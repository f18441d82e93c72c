"""Page: another exporter's page as a source. In: its address, a budget. Out: a `Snapshot`, in time, always.

dcgm-exporter repeats its last good numbers for ever when the service behind it is gone, and calls itself healthy. A
page of running cards never stays as it is: energy and power move. So one that did not change for minutes is not used.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from exporter.cards import CardPage
from exporter.digest import LARGE
from exporter.failures import Reason, ScrapeError
from exporter.gpu.field import Field
from exporter.gpu.lines import Unreadable, readable
from exporter.gpu.reading import Card, Failure, Reading, Snapshot, Xid
from exporter.parse import Page, Parser, Series
from exporter.scrape import Answer, Origin, Scraper
from exporter.secret import SecretError, SecretFile
from exporter.tame import tamed

__all__ = ["MOST_CARDS", "PageReader", "PageSource"]

_FRESH = 150.0
"""Seconds; dcgm-exporter refreshes every 30 s by default, so this is five refreshes missed."""
MOST_CARDS = 1024
"""Cards and parts of cards; a host has some dozens."""
_MOST_NOTES = 10
_UNREACHED = frozenset({Reason.DNS, Reason.REFUSED, Reason.RESET, Reason.TLS})
_TELLING = {
    "requires reset": Failure.RESET_REQUIRED,
    "err!": Failure.UNKNOWN,
    "unknown error": Failure.UNKNOWN,
}
"""Words in a number's place that say more than that there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSource:
    """How to read one exporter's pages; `last_xids` answers the last Xid by card where the page tells only that.

    `place` answers the card of a series and the name it goes by, or None for a stranger. `fields` say where on the
    page each metric comes from.
    """

    name: str
    read: Callable[[Page], Snapshot]
    place: Callable[[str, Mapping[str, str]], tuple[Card, str] | None]
    fields: tuple[Field, ...]
    last_xids: Callable[[Page], dict[str, int]] | None = None


class PageReader:
    """Reads one page again and again. `clock` runs evenly, in seconds; `wall` is Unix time, which people may set."""

    def __init__(
        self,
        source: PageSource,
        page: CardPage,
        scraper: Scraper,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._source = source
        self._page = page
        self._secret = SecretFile(page.api_key_file, "api_key_file") if page.api_key_file is not None else None
        self._scraper = scraper
        self._clock = clock
        self._wall = wall
        self._parser = Parser()
        self._last: tuple[tuple[Series, ...], tuple[str, ...]] | None = None
        self._changed_at = 0.0
        self._xids: dict[str, int] = {}

    async def read(self, budget: float) -> Snapshot:
        """Fetch and read the page."""
        deadline = asyncio.get_running_loop().time() + budget
        try:
            answer = await self._scraper.get(self._origin(), "/metrics", deadline)
            is_large = len(answer.body) > LARGE
            return await asyncio.to_thread(self._understood, answer) if is_large else self._understood(answer)
        except ScrapeError as error:
            return Snapshot(failure=_failure(error), sentence=str(error))

    def _understood(self, answer: Answer) -> Snapshot:
        """Read a page that came; of a large one in a thread, so that no replica waits for it."""
        page, left_out, broken = self._parsed(answer)
        now = self._clock()
        numbers = (page.series, tuple(map(repr, page.values)))  # a NaN that stays differs from itself
        if numbers != self._last:
            self._last, self._changed_at = numbers, now
        if now - self._changed_at > _FRESH:
            sentence = (
                f"no number on the page has changed for {now - self._changed_at:.0f} s: is the service behind it gone?"
            )
            return Snapshot(failure=Failure.STALE, sentence=sentence)
        told = self._source.read(page)
        if not told.readings:
            sentence = broken or f"the page has no card in the names of {self._source.name}"
            return Snapshot(failure=Failure.UNUSABLE if broken else Failure.NO_GPU, sentence=sentence)
        if len(told.readings) > MOST_CARDS:
            sentence = f"the page tells of {len(told.readings)} cards, more than {MOST_CARDS}: is it one host's?"
            return Snapshot(failure=Failure.UNUSABLE, sentence=sentence)
        return Snapshot(
            readings=tuple(self._in_trouble(told.readings, left_out)),
            dropped=told.dropped,
            notes=tuple(self._notes(left_out)),
            xids=self._new_xids(page),
        )

    async def close(self) -> None:
        """Hold nothing: connections are the scraper's."""

    def _origin(self) -> Origin:
        try:
            key = self._secret.read() if self._secret else None
        except SecretError as error:
            raise ScrapeError(Reason.AUTH, str(error)) from None
        return Origin(url=self._page.url, key=key, ca_file=self._page.ca_file, keep_alive=False)

    def _parsed(self, answer: Answer) -> tuple[Page, tuple[Unreadable, ...], str]:
        """Read a page, line by line where some cannot be read; answer those, and what was wrong with the page."""
        openmetrics = "openmetrics" in answer.content_type
        broken = ""
        try:
            page = self._parser.parse(answer.body, openmetrics=openmetrics)
        except ScrapeError as error:
            if openmetrics or error.reason is not Reason.PARSE:
                raise
            broken = str(error)
        else:
            if not page.dropped or openmetrics:
                return page, (), ""
        kept, left_out = readable(answer.body)
        return replace(self._parser.parse(kept), dropped=len(left_out)), left_out, broken

    def _in_trouble(self, readings: Iterable[Reading], left_out: Iterable[Unreadable]) -> Iterator[Reading]:
        """Mark the cards of which a word in a number's place says that something is wrong with them."""
        found: dict[str, set[Failure]] = {}
        for one in left_out:
            placed = self._source.place(one.name, one.labels)
            failures = {failure for words, failure in _TELLING.items() if words in one.word.lower()}
            if placed is not None and failures:
                found.setdefault(tamed(placed[0].gpu), set()).update(failures)
        for reading in readings:
            failures = set() if reading.card.partition else found.get(reading.card.gpu, set())
            yield replace(reading, failures=reading.failures | failures) if failures else reading

    def _notes(self, left_out: tuple[Unreadable, ...]) -> Iterator[str]:
        """Say which numbers are left out, of which card, and what stands in their place."""
        for one in left_out[:_MOST_NOTES]:
            placed = self._source.place(one.name, one.labels)
            whose = f"{tamed(placed[0].gpu)}: " if placed else ""
            yield f"{whose}{tamed(one.name)} is {one.word or 'no sample'!r}; left out"
        if len(left_out) > _MOST_NOTES:
            yield f"{len(left_out) - _MOST_NOTES} more lines have no number; left out"

    def _new_xids(self, page: Page) -> tuple[Xid, ...]:
        """Count a change of the last Xid as one error; what was there at first happened before we looked."""
        if self._source.last_xids is None:
            return ()
        before, self._xids = self._xids, self._source.last_xids(page)
        new = Counter((gpu, xid) for gpu, xid in self._xids.items() if xid and gpu in before and before[gpu] != xid)
        return tuple(Xid(gpu=gpu, xid=xid, count=count, at=self._wall()) for (gpu, xid), count in new.items())


def _failure(error: ScrapeError) -> Failure:
    if error.reason is Reason.TIMEOUT:
        return Failure.TIMEOUT
    return Failure.UNREACHABLE if error.reason in _UNREACHED else Failure.UNUSABLE
