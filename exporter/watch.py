"""Watch: one replica over time. In: a request to look, with a budget. Out: an `Outcome`, shared by all who ask at once.

Ties the stages together: scrape -> parse -> normalise -> status, and turns whatever fails into data.
"""

import asyncio
import json
import logging
import time
from collections import Counter
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from exporter import catalogue
from exporter.dialect import Engine, Facts
from exporter.discovery import discover, is_not_here
from exporter.drain import Drains
from exporter.engines import ENGINES
from exporter.failures import Reason, ScrapeError, State, state_of
from exporter.fleet import Replica
from exporter.identity import Identities
from exporter.normalise import Normalised, Normaliser, recognise
from exporter.parse import Page, Parser
from exporter.scrape import Answer, Origin, Scraper
from exporter.secret import SecretError, SecretFile
from exporter.status import Serving, Status, status_text

__all__ = ["AbandonedError", "Outcome", "Stages", "Watch"]

_log = logging.getLogger(__name__)
_GRACE = 0.05  # seconds; a scrape that is out of time says so itself, and counts it
_EXTRAS_SHARE = 0.5  # of the time left: a slow extra must not cost the page


class AbandonedError(Exception):
    """A scrape was given up for reasons of our own; it says nothing about the replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """What all replicas share."""

    scraper: Scraper
    parser: Parser
    normaliser: Normaliser
    identities: Identities
    drains: Drains


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one scrape: the page to answer, and a summary for people. `at` is Unix time."""

    page: str
    model: str
    engine: str
    state: State
    up: bool
    at: float
    duration: float
    sentence: str = ""
    running: float | None = None
    waiting: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Kept:
    """An extra's answer and until when it is used again."""

    until: float
    answer: Any


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
    _task: asyncio.Task[Outcome] | None = None
    _secret: SecretFile | None = None
    _kept: dict[str, _Kept] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Open nothing yet; the key is read at each scrape."""
        if self.replica.api_key_file is not None:
            self._secret = SecretFile(self.replica.api_key_file, "api_key_file")

    async def look(self, budget: float) -> Outcome:
        """Answer the outcome of a scrape that is at most `min_interval` old, within `budget` seconds."""
        now = asyncio.get_running_loop().time()
        if self._task is None or (self._task.done() and now - self._started >= self.min_interval):
            self._started = now
            self._task = asyncio.create_task(self._scrape(now + budget))
        task = self._task
        await asyncio.wait({task}, timeout=budget + _GRACE)
        if task.cancelled():
            raise AbandonedError(f"the scrape of {self.replica.name} was abandoned: the exporter is stopping")
        if task.done():
            return task.result()
        late = ScrapeError(Reason.TIMEOUT, "another reader's scrape is still waiting for the engine")
        return self._failed(late, budget, time.time())

    def abandon(self) -> None:
        """End a running scrape; those who wait for it are told so."""
        if self._task is not None:
            self._task.cancel()

    async def _scrape(self, deadline: float) -> Outcome:
        at, start = time.time(), time.perf_counter()
        try:
            normalised, engine, version = await self._read(deadline)
        except ScrapeError as error:
            self._kept.clear()
            self._errors[error.reason] += 1
            outcome = self._failed(error, time.perf_counter() - start, at)
        else:
            self._dropped += normalised.dropped
            self.stages.identities.learn(self.replica, model=normalised.model, engine=engine.name)
            outcome = self._succeeded(normalised, engine, version, time.perf_counter() - start, at)
        if self.last is None or self.last.state is not outcome.state:
            _log.info(
                "replica %s is %s%s", self.replica.name, outcome.state, f": {outcome.sentence}" * (not outcome.up)
            )
        self.last = outcome
        return outcome

    async def _read(self, deadline: float) -> tuple[Normalised, Engine, str | None]:
        """Fetch and understand the page and what the engine tells beside it.

        An engine that was learned, not configured, may have been replaced by another one: then it is learned anew.
        """
        identity = self.stages.identities.of(self.replica)
        engine = ENGINES.get(identity.engine)
        if engine is None and identity.engine:
            raise ScrapeError(Reason.INCOMPLETE, f"pages of {identity.engine} cannot be read by this version")
        if engine is None:
            return await self._read_stranger(deadline)
        try:
            return await self._read_as(engine, deadline)
        except ScrapeError as error:
            if self.replica.engine is not None or not is_not_here(error):
                raise
            try:
                return await self._read_stranger(deadline)
            except ScrapeError:
                raise error from None

    async def _read_as(self, engine: Engine, deadline: float) -> tuple[Normalised, Engine, str | None]:
        """Read a page as one engine's."""
        origin = self._origin(engine)
        early = asyncio.create_task(self._ask(engine, origin, deadline))
        try:
            answer, page = await self._fetch(origin, engine.path, deadline)
            facts = engine.facts(await early)
        except ScrapeError as error:
            if state_of(error) is State.DISABLED:
                raise _without_page(error, engine) from None
            raise
        finally:
            early.cancel()
        return self._normalised(answer, page, engine, facts), engine, facts.version

    async def _read_stranger(self, deadline: float) -> tuple[Normalised, Engine, str | None]:
        """Find out whose page this is, and read it."""
        origin = self._origin(None)
        engine, answer, page = await discover(lambda path: self._fetch(origin, path, deadline))
        facts = engine.facts(await self._ask(engine, origin, deadline))
        return self._normalised(answer, page, engine, facts), engine, facts.version

    async def _fetch(self, origin: Origin, path: str, deadline: float) -> tuple[Answer, Page]:
        answer = await self.stages.scraper.get(origin, path, deadline)
        return answer, self.stages.parser.parse(answer.body, openmetrics="openmetrics" in answer.content_type)

    def _normalised(self, answer: Answer, page: Page, engine: Engine, facts: Facts) -> Normalised:
        if facts.numbers:
            added = [self.stages.parser.series(name, {}) for name in facts.numbers]
            page = Page(
                series=(*page.series, *added), values=(*page.values, *facts.numbers.values()), dropped=page.dropped
            )
        normalise = self.stages.normaliser.normalise
        normalised = normalise(page, engine, self.replica.model or facts.model)
        if not normalised.model and (learned := self.stages.identities.of(self.replica).model):
            normalised = normalise(page, engine, learned)
        if not normalised.recognised:
            raise _foreign(page, engine)
        if normalised.missing and not answer.framed:
            lacking = ", ".join(metric.name for metric in normalised.missing)
            raise ScrapeError(Reason.INCOMPLETE, f"the page has no length and seems cut: it lacks {lacking}")
        return normalised

    async def _ask(self, engine: Engine, origin: Origin, deadline: float) -> dict[str, Any]:
        """Ask the extra endpoints; answer what came back as JSON, by path."""
        now = asyncio.get_running_loop().time()
        until = now + _EXTRAS_SHARE * (deadline - now)
        answers: dict[str, Any] = {}
        for extra in engine.extras:
            if extra.when is None or extra.when(answers):
                kept = self._kept.get(extra.path)
                if kept is None or kept.until <= now:
                    try:
                        answer = json.loads((await self.stages.scraper.get(origin, extra.path, until)).body)
                    except (ScrapeError, ValueError, RecursionError) as error:
                        if not isinstance(error, ScrapeError) or error.status != HTTPStatus.NOT_FOUND:
                            continue
                        answer = None  # an endpoint of other versions: as rarely asked as one that is there
                    kept = self._kept[extra.path] = _Kept(until=now + extra.every.total_seconds(), answer=answer)
                if kept.answer is not None:
                    answers[extra.path] = kept.answer
        return answers

    def _origin(self, engine: Engine | None) -> Origin:
        return Origin(
            url=self.replica.url,
            key=self._key(),
            ca_file=self.replica.ca_file,
            keep_alive=engine.keep_alive if engine else False,
        )

    def _key(self) -> str | None:
        try:
            return self._secret.read() if self._secret else None
        except SecretError as error:
            raise ScrapeError(Reason.AUTH, str(error)) from None

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
            serving=(Serving(model=identity.model, up=False, state=state),),
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
            sentence=str(error),
        )

    def _succeeded(self, found: Normalised, engine: Engine, version: str | None, duration: float, at: float) -> Outcome:
        state, drain_end = self._planned(State.SLEEPING if found.sleeping else State.READY)
        status = Status(
            serving=(Serving(model=found.model, up=True, state=state),),
            duration=duration,
            errors=self._errors,
            dropped=self._dropped,
            drain_end=drain_end,
            version=version,
            missing=found.missing,
            unmapped=len(found.unmapped),
        )
        return Outcome(
            page=status_text(status) + found.text,
            model=found.model,
            engine=engine.name,
            state=state,
            up=True,
            at=at,
            duration=duration,
            running=found.totals.get(catalogue.REQUESTS_RUNNING.name),
            waiting=found.totals.get(catalogue.REQUESTS_WAITING.name),
            notes=_notes(found),
        )


def _without_page(error: ScrapeError, engine: Engine) -> ScrapeError:
    """Say what it means that an engine answers and has no page.

    An engine that cannot do without a page, or whose page itself tells that metrics are off, is not what answers here.
    """
    if engine.switch_on and not engine.switched_off:
        return ScrapeError(error.reason, f"{error}: {engine.switch_on}", status=error.status)
    return ScrapeError(error.reason, f"{error}: is this {engine.title}?", status=error.status, state=State.BROKEN)


def _foreign(page: Page, engine: Engine) -> ScrapeError:
    """Say why a page is not the engine's that it should be."""
    other = recognise(page)
    if other is not None and other is not engine:
        return ScrapeError(
            Reason.INCOMPLETE, f"a page of {other.title}, not of {engine.title}: correct engine in fleet.yml"
        )
    if any(series.name in engine.switched_off for series in page.series):
        return ScrapeError(Reason.INCOMPLETE, f"metrics are switched off: {engine.switch_on}", state=State.DISABLED)
    if not page.series and not engine.required:
        return ScrapeError(
            Reason.INCOMPLETE, f"the page is empty: {engine.title} writes nothing before its first request"
        )
    what = "the page is empty" if not page.series else "a page without the series that every version provides"
    return ScrapeError(Reason.INCOMPLETE, f"{what}: is this {engine.title}?")


def _notes(found: Normalised) -> tuple[str, ...]:
    """Say what is odd about a page that is used."""
    notes = [f"no known engine name provides {metric.name}" for metric in found.missing]
    if found.unmapped:
        notes.append(f"unmapped: {', '.join(sorted(set(found.unmapped)))}")
    if found.dropped:
        notes.append(f"{found.dropped} samples left out")
    return tuple(notes)
