"""Watch: one replica over time. In: a request to look, with a budget. Out: an `Outcome`, shared by all who ask at once.

Ties the stages together: reader -> status and page, and turns whatever fails into data.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from exporter import catalogue
from exporter.catalogue import Metric
from exporter.digest import Digest
from exporter.drain import Drains
from exporter.failures import Reason, ScrapeError, State, sentence_of, state_of
from exporter.fleet import Replica
from exporter.identity import Identities
from exporter.normalise import Normalised, together
from exporter.reader import Found, Reader, Served
from exporter.scrape import Scraper
from exporter.status import Serving, Status, status_text
from exporter.tame import shortened, tamed

__all__ = ["AbandonedError", "Outcome", "Stages", "Watch"]

_log = logging.getLogger(__name__)
_NAMED = 10  # unmapped names on the landing page
_LONGEST = 600  # characters of a sentence, which may repeat what an engine says
_GRACE = 0.05  # seconds; a scrape that is out of time says so itself, and counts it
_ANSWERING = (State.READY, State.LOADING, State.SLEEPING)
"""Of a router's models, the first of these states that one has is the router's."""


class AbandonedError(Exception):
    """A scrape was given up for reasons of our own; it says nothing about the replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """What all replicas share."""

    scraper: Scraper
    digest: Digest
    identities: Identities
    drains: Drains


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one scrape: the page to answer, and a summary for people. `at` is Unix time.

    `ran_out` tells that the time was over before the engine answered.
    """

    page: str
    model: str
    engine: str
    state: State
    up: bool
    at: float
    duration: float
    sentence: str = ""
    ran_out: bool = False
    running: float | None = None
    waiting: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Watch:
    """Scrapes one replica when asked, once at a time, at most once in `min_interval` seconds."""

    replica: Replica
    stages: Stages
    min_interval: float
    last: Outcome | None = None
    _errors: Counter[Reason] = field(default_factory=Counter)
    _dropped: int = 0
    _started: float = 0.0
    _budget: float = 0.0
    _task: asyncio.Task[Outcome] | None = None
    _reader: Reader = field(init=False)

    def __post_init__(self) -> None:
        """Make the reader; it opens nothing yet."""
        self._reader = Reader(
            replica=self.replica,
            scraper=self.stages.scraper,
            digest=self.stages.digest,
            identities=self.stages.identities,
        )

    async def look(self, budget: float) -> Outcome:
        """Answer the outcome of a scrape that is at most `min_interval` old, within `budget` seconds.

        A scrape that ran out of time is not shared with who has more of it: an impatient reader costs itself only.
        """
        now = asyncio.get_running_loop().time()
        if self._task is None or (self._task.done() and self._is_over(self._task, now, budget)):
            self._started, self._budget = now, budget
            self._task = asyncio.create_task(self._scrape(now + budget))
        task, tried = self._task, self._budget
        await asyncio.wait({task}, timeout=budget + _GRACE)
        if task.cancelled():
            raise AbandonedError(f"the scrape of {self.replica.name} was abandoned: the exporter is stopping")
        if task.done():
            left = now + budget - asyncio.get_running_loop().time()
            return await self.look(left) if task.result().ran_out and left > tried else task.result()
        late = ScrapeError(Reason.TIMEOUT, "another reader's scrape is still waiting for the engine")
        return self._failed(late, budget, time.time())

    def _is_over(self, done: asyncio.Task[Outcome], now: float, budget: float) -> bool:
        """Tell whether what came of a scrape is not to be shared with a reader who comes now."""
        if now - self._started >= self.min_interval or done.cancelled():
            return True
        return budget > self._budget and done.result().ran_out

    def abandon(self) -> None:
        """End a running scrape; those who wait for it are told so."""
        if self._task is not None:
            self._task.cancel()

    async def _scrape(self, deadline: float) -> Outcome:
        at, start = time.time(), time.perf_counter()
        try:
            found = await self._read(deadline)
        except ScrapeError as error:
            self._reader.forget()
            self._errors[error.reason] += 1
            outcome = self._failed(error, time.perf_counter() - start, at)
        else:
            self._errors.update(one.error.reason for one in found.served if one.error is not None)
            self._dropped += sum(one.page.dropped for one in found.served if one.page is not None)
            self.stages.identities.learn(self.replica, models=_at_work(found.served), engine=found.engine.name)
            outcome = self._succeeded(found, time.perf_counter() - start, at)
        if self.last is None or self.last.state is not outcome.state:
            _log.info(
                "replica %s is %s%s", self.replica.name, outcome.state, f": {outcome.sentence}" * (not outcome.up)
            )
        self.last = outcome
        return outcome

    async def _read(self, deadline: float) -> Found:
        """Read; whatever an engine does, it costs its own page only, and the log tells once what we did not foresee."""
        try:
            return await self._reader.read(deadline)
        except ScrapeError:
            raise
        except Exception as error:  # noqa: BLE001 - one replica must not cost its reader an answer
            sentence = f"reading the page failed in an unforeseen way ({type(error).__name__}): see the log"
            if self.last is None or self.last.sentence != sentence:
                _log.exception("replica %s: %s", self.replica.name, sentence)
            raise ScrapeError(Reason.PARSE, sentence) from None

    def _planned(self, state: State) -> tuple[State, float | None]:
        """Answer the state to show and when the drain ends.

        A drained replica is draining whether it still answers or is down already: both are planned, and nobody needs to
        be told. `llm_replica_up` and the errors say which.
        """
        drain = self.stages.drains.of(self.replica.name)
        return (state, None) if drain is None else (State.DRAINING, drain.until)

    def _failed(self, error: ScrapeError, duration: float, at: float) -> Outcome:
        identity = self.stages.identities.of(self.replica)
        state, drain_end = self._planned(state_of(error))
        status = Status(
            serving=tuple(Serving(model=model, up=False, state=state) for model in identity.models or ("",)),
            duration=duration,
            errors=self._errors,
            dropped=self._dropped,
            drain_end=drain_end,
        )
        return Outcome(
            page=status_text(status),
            model=identity.model,
            engine=identity.engine,
            state=state,
            up=False,
            at=at,
            duration=duration,
            sentence=shortened(sentence_of(error), _LONGEST),
            ran_out=error.reason is Reason.TIMEOUT,
        )

    def _succeeded(self, found: Found, duration: float, at: float) -> Outcome:
        drain_end = self._planned(State.READY)[1]
        pages = [one.page for one in found.served if one.page is not None]
        status = Status(
            serving=tuple(map(self._serving, found.served)) or (Serving(model="", up=True, state=State.SLEEPING),),
            duration=duration,
            errors=self._errors,
            dropped=self._dropped,
            drain_end=drain_end,
            version=found.version,
            missing=_each_once([metric for one in pages for metric in one.missing]),
            unmapped=sum(len(one.unmapped) for one in pages) if pages else None,
        )
        state = _state(status.serving)
        return Outcome(
            page=status_text(status) + together(pages),
            model=", ".join(one.model for one in found.served),
            engine=found.engine.name,
            state=state,
            up=any(one.up for one in status.serving),
            at=at,
            duration=duration,
            sentence=shortened(
                "; ".join(f"{one.model}: {sentence_of(one.error)}" for one in found.served if one.error), _LONGEST
            ),
            running=_total(pages, catalogue.REQUESTS_RUNNING),
            waiting=_total(pages, catalogue.REQUESTS_WAITING),
            notes=(*(note for one in pages for note in _notes(one)), *_notes_on_models(found)),
        )

    def _serving(self, served: Served) -> Serving:
        """Say what a replica is for a model; one that sleeps needs no page to be well."""
        up = served.page is not None or served.state is State.SLEEPING
        return Serving(model=served.model, up=up, state=self._planned(served.state)[0])


def _state(serving: Sequence[Serving]) -> State:
    """Answer the one state of a replica that may be in several, one for each model."""
    states = {one.state for one in serving}
    return next((state for state in _ANSWERING if state in states), serving[0].state)


def _at_work(served: Sequence[Served]) -> tuple[str, ...]:
    """Answer the models that would be missed: of a router's, those that do not sleep."""
    return tuple(one.model for one in served if len(served) == 1 or one.state is not State.SLEEPING)


def _each_once(metrics: Sequence[Metric]) -> tuple[Metric, ...]:
    return tuple({metric.name: metric for metric in metrics}.values())


def _total(pages: Sequence[Normalised], gauge: Metric) -> float | None:
    values = [one.totals[gauge.name] for one in pages if gauge.name in one.totals]
    return sum(values) if values else None


def _notes(found: Normalised) -> tuple[str, ...]:
    """Say what is odd about a page that is used."""
    notes = [f"no known engine name provides {metric.name}" for metric in found.missing]
    if found.unmapped:
        names = sorted(set(found.unmapped))
        more = f" and {len(names) - _NAMED} more names" if len(names) > _NAMED else ""
        notes.append(f"unmapped: {', '.join(map(tamed, names[:_NAMED]))}{more}")
    if found.dropped:
        notes.append(f"{found.dropped} samples left out")
    return tuple(notes)


def _notes_on_models(found: Found) -> tuple[str, ...]:
    """Say that a router lists more models than are watched."""
    more = f"{found.left_out} more models of the router are not watched: name those that matter in fleet.yml"
    return (more,) if found.left_out else ()
