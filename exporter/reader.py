"""Reader: one look at a replica. In: a deadline. Out: what was `Found`, or ScrapeError.

Fetches the page and what the engine tells beside it, recognises the engine, asks a router for each of its models.
"""

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from exporter.dialect import Answers, Engine, Extra, Facts, Router
from exporter.digest import Digest
from exporter.discovery import discover, is_not_here
from exporter.engines import ENGINES
from exporter.failures import Reason, ScrapeError, State, state_of
from exporter.fleet import Replica
from exporter.identity import Identities
from exporter.normalise import Normalised, Normaliser, recognise
from exporter.parse import Page, Parser
from exporter.resemblance import resemblance
from exporter.scrape import Answer, Origin, Scraper
from exporter.secret import SecretError, SecretFile
from exporter.tame import tamed

__all__ = ["Found", "Reader", "Served"]

_EXTRAS_SHARE = 0.5  # of the time left: a slow extra must not cost the page
_EXTRA_LIMIT = 2**20
"""Bytes of an extra endpoint's answer; JSON is read at once, and a slot takes about 1.5 KiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One model of a replica: its state, and its page or the error that there was instead, where it has one."""

    model: str
    state: State
    page: Normalised | None = None
    error: ScrapeError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A replica that answered: whose engine it is, and each model it serves, but for those that are too many."""

    engine: Engine
    version: str | None
    served: tuple[Served, ...]
    left_out: int = 0


@dataclass(slots=True, kw_only=True)
class _Kept:
    """An extra's answer and until when it is used again."""

    until: float
    answer: Any


@dataclass(slots=True, kw_only=True)
class Reader:
    """Reads one replica."""

    replica: Replica
    scraper: Scraper
    digest: Digest
    identities: Identities
    _secret: SecretFile | None = None
    _kept: dict[str, _Kept] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Open nothing yet; the key is read each time."""
        if self.replica.api_key_file is not None:
            self._secret = SecretFile(self.replica.api_key_file, "api_key_file")

    def forget(self) -> None:
        """Ask every extra endpoint anew next time, because the replica may be another one by then."""
        self._kept.clear()

    async def read(self, deadline: float) -> Found:
        """Fetch and understand the page and what the engine tells beside it.

        An engine that was learned, not configured, may have been replaced by another one: then it is learned anew.
        """
        identity = self.identities.of(self.replica)
        engine = ENGINES.get(identity.engine)
        if engine is None and self.replica.engine:
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

    async def _read_as(self, engine: Engine, deadline: float) -> Found:
        """Read a page as one engine's."""
        origin = self._origin(engine)
        early = self._ask_early(engine.extras, origin, deadline)
        try:
            if engine.is_to_rest is not None and engine.is_to_rest(answers := await early):
                return self._resting(engine, answers)
            answer, page = await self._fetch(origin, engine.path, deadline)
            facts = engine.facts(await early)
        except ScrapeError as error:
            if engine.router is not None and error.status == engine.router.refusal:
                answers = await early
                if engine.router.is_here(answers):
                    return await self._read_router(engine, engine.router, engine.facts(answers).version, deadline)
            if state_of(error) is State.DISABLED:
                raise _without_page(error, engine) from None
            raise
        finally:
            early.cancel()
        return await self._found(answer, page, engine, facts)

    async def _read_stranger(self, deadline: float) -> Found:
        """Find out whose page this is, and read it."""
        origin = self._origin(None)
        for engine in ENGINES.values():
            if engine.is_to_rest is not None:
                answers = await self._ask([extra for extra in engine.extras if extra.when is None], origin, deadline)
                if engine.is_to_rest(answers):
                    return self._resting(engine, answers)
        try:
            engine, answer, page = await discover(lambda path: self._fetch(origin, path, deadline))
        except ScrapeError as error:
            for engine in ENGINES.values():
                if engine.router is not None and error.status == engine.router.refusal:
                    return await self._read_as(engine, deadline)
            raise
        facts = engine.facts(await self._ask(engine.extras, origin, deadline))
        return await self._found(answer, page, engine, facts)

    def _resting(self, engine: Engine, answers: Answers) -> Found:
        """Tell of a server that sleeps and is left alone: what it counts is not known."""
        facts = engine.facts(answers)
        model = self.replica.model or (facts.model and tamed(facts.model)) or self.identities.of(self.replica).model
        served = Served(model=model, state=State.SLEEPING)
        return Found(engine=engine, version=facts.version and tamed(facts.version), served=(served,))

    async def _read_router(self, engine: Engine, router: Router, version: str | None, deadline: float) -> Found:
        """Read the page of every model that a router runs; one that fails costs its own series only."""
        origin = self._origin(engine)
        listed = await self._json(origin, router.path, deadline)
        models = router.models(listed)
        if models is None:
            raise ScrapeError(Reason.INCOMPLETE, f"{router.path} of the router is no list of models")
        if self.replica.model is not None:
            models = _only(self.replica.model, models)
        watched = list(models.items())[: router.most]
        served = await asyncio.gather(
            *(self._read_model(engine, router, origin, name, state, deadline) for name, state in watched)
        )
        left_out = len(models) - len(watched)
        return Found(engine=engine, version=version and tamed(version), served=tuple(served), left_out=left_out)

    async def _read_model(  # noqa: PLR0913, PLR0917 - what one model's reading depends on
        self, engine: Engine, router: Router, origin: Origin, model: str, state: State, deadline: float
    ) -> Served:
        name = self.replica.model or tamed(model)
        if state is State.BROKEN:
            said = ScrapeError(Reason.INCOMPLETE, f"{router.path} says that it failed, or what we do not know")
            return Served(model=name, state=state, error=said)
        if state is not State.READY:
            return Served(model=name, state=state)
        query = router.query(model)
        try:
            answers, (answer, page) = await asyncio.gather(
                self._ask(engine.extras, origin, deadline, query), self._fetch(origin, engine.path + query, deadline)
            )
            facts = Facts(model=model, numbers=engine.facts(answers).numbers)
            [served] = (await self._found(answer, page, engine, facts)).served
        except ScrapeError as error:
            if error.status == router.refusal:
                return Served(model=name, state=State.SLEEPING)  # unloaded since the list was made
            if state_of(error) is State.DISABLED:
                error = _without_page(error, engine)
            return Served(model=name, state=state_of(error), error=error)
        return served

    async def _fetch(self, origin: Origin, path: str, deadline: float) -> tuple[Answer, Page]:
        answer = await self.scraper.get(origin, path, deadline)
        openmetrics = "openmetrics" in answer.content_type
        try:
            page = await self.digest.apply(
                len(answer.body), lambda parser, _: parser.parse(answer.body, openmetrics=openmetrics)
            )
        except ScrapeError as error:
            seems = f"{path} seems to be {words}: " if (words := resemblance(answer.body)) else ""
            raise ScrapeError(error.reason, f"{seems}{error}") from None
        return answer, page

    async def _found(self, answer: Answer, page: Page, engine: Engine, facts: Facts) -> Found:
        normalised = await self.digest.apply(
            len(answer.body),
            lambda parser, normaliser: self._normalised(normaliser, _with(facts.numbers, page, parser), engine, facts),
        )
        if normalised.missing and not answer.framed:
            lacking = ", ".join(metric.name for metric in normalised.missing)
            raise ScrapeError(Reason.INCOMPLETE, f"the page has no length and seems cut: it lacks {lacking}")
        state = State.SLEEPING if normalised.sleeping else State.READY
        served = Served(model=normalised.model, state=state, page=normalised)
        return Found(engine=engine, version=facts.version and tamed(facts.version), served=(served,))

    def _normalised(self, normaliser: Normaliser, page: Page, engine: Engine, facts: Facts) -> Normalised:
        normalised = normaliser.normalise(page, engine, self.replica.model or (facts.model and tamed(facts.model)))
        if not normalised.model and (learned := self.identities.of(self.replica).model):
            normalised = normaliser.normalise(page, engine, learned)
        if not normalised.recognised:
            raise _foreign(page, engine)
        return normalised

    def _ask_early(self, extras: Iterable[Extra], origin: Origin, deadline: float) -> "asyncio.Future[dict[str, Any]]":
        """Ask the extra endpoints beside the page; mostly all was told a while ago and still holds."""
        told = self._told(extras)
        if told is None:
            return asyncio.create_task(self._ask(extras, origin, deadline))
        answered = asyncio.get_running_loop().create_future()
        answered.set_result(told)
        return answered

    def _told(self, extras: Iterable[Extra]) -> dict[str, Any] | None:
        """Answer what the extra endpoints told before, None if one of them has to be asked again."""
        now = asyncio.get_running_loop().time()
        answers: dict[str, Any] = {}
        for extra in extras:
            if extra.when is None or extra.when(answers):
                kept = self._kept.get(extra.path)
                if kept is None or kept.until <= now:
                    return None
                if kept.answer is not None:
                    answers[extra.path] = kept.answer
        return answers

    async def _ask(self, extras: Iterable[Extra], origin: Origin, deadline: float, query: str = "") -> dict[str, Any]:
        """Ask the extra endpoints; answer what came back as JSON, by path."""
        now = asyncio.get_running_loop().time()
        until = now + _EXTRAS_SHARE * (deadline - now)
        answers: dict[str, Any] = {}
        for extra in extras:
            if extra.when is None or extra.when(answers):
                path = extra.path + query
                kept = self._kept.get(path)
                if kept is None or kept.until <= now:
                    try:
                        answer = await self._json(origin, path, until)
                    except ScrapeError as error:
                        if error.status != HTTPStatus.NOT_FOUND:
                            continue
                        answer = None  # an endpoint of other versions: as rarely asked as one that is there
                    kept = self._kept[path] = _Kept(until=now + extra.every.total_seconds(), answer=answer)
                if kept.answer is not None:
                    answers[extra.path] = kept.answer
        return answers

    async def _json(self, origin: Origin, path: str, deadline: float) -> Any:  # noqa: ANN401 - JSON of a foreign server
        answer = await self.scraper.get(origin, path, deadline, limit=_EXTRA_LIMIT)
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError):
            raise ScrapeError(Reason.PARSE, f"{path} did not answer in JSON") from None

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


def _with(numbers: Mapping[str, float], page: Page, parser: Parser) -> Page:
    """Add what other endpoints told to a page."""
    if not numbers:
        return page
    added = [parser.series(name, {}) for name in numbers]
    return Page(series=(*page.series, *added), values=(*page.values, *numbers.values()), dropped=page.dropped)


def _only(model: str, models: Mapping[str, State]) -> Mapping[str, State]:
    """Keep the model that fleet.yml names, so that a router's models can be told apart as replicas of their own."""
    if model not in models:
        listed = ", ".join(sorted(models)) or "none"
        raise ScrapeError(
            Reason.INCOMPLETE, f"the router has no model {model}; it lists {listed}: correct model in fleet.yml"
        )
    return {model: models[model]}


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
    if not page.dropped and any(series.name in engine.switched_off for series in page.series):
        return ScrapeError(Reason.INCOMPLETE, f"metrics are switched off: {engine.switch_on}", state=State.DISABLED)
    if not page.series and not engine.required:
        return ScrapeError(
            Reason.INCOMPLETE, f"the page is empty: {engine.title} writes nothing before its first request"
        )
    what = "the page is empty" if not page.series else "a page without the series that every version provides"
    if page.dropped:
        what = f"{what}, {page.dropped} samples left out since a value is no number or a label no UTF-8"
    return ScrapeError(Reason.INCOMPLETE, f"{what}: is this {engine.title}?")
