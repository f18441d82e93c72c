"""Discovery: whose page is where, for a replica whose engine nobody told.

In: a way to fetch and parse a path. Out: the engine and its page, or one sentence that names the engines we know.
"""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

from exporter.dialect import Engine
from exporter.engines import ENGINES
from exporter.failures import Reason, ScrapeError, State
from exporter.normalise import recognise
from exporter.parse import Page
from exporter.scrape import Answer

__all__ = ["Fetch", "discover", "is_not_here"]

Fetch = Callable[[str], Awaitable[tuple[Answer, Page]]]

_FIRST = "/metrics"
_PLACES = tuple(dict.fromkeys((_FIRST, *(engine.path for engine in ENGINES.values()))))
_NO_SUCH_PAGE = frozenset({404, 405})
_SWITCH_ON = " or ".join(
    engine.switch_on
    for engine in ENGINES.values()
    if engine.path == _FIRST and engine.switch_on and not engine.switched_off
)
"""What helps an engine whose usual page is not there, whichever of them it is."""


async def discover(fetch: Fetch) -> tuple[Engine, Answer, Page]:
    """Fetch the places where engines have their pages until one is recognised; the first place's failure counts."""
    failures = []
    for path in _PLACES:
        try:
            answer, page = await fetch(path)
        except ScrapeError as error:
            if error.status == HTTPStatus.NOT_IMPLEMENTED:
                raise ScrapeError(error.reason, f"{error}: {_SWITCH_ON}", status=error.status) from None
            if not is_not_here(error):
                raise
            failures.append(error)
        else:
            engine = recognise(page)
            if engine is not None:
                return engine, answer, page
            failures.append(_unknown(page))
    raise _stranger(failures[0])


def is_not_here(error: ScrapeError) -> bool:
    """Tell whether a failure leaves open that another engine's page is there, or the page is elsewhere."""
    return error.reason in {Reason.PARSE, Reason.INCOMPLETE} or error.status in _NO_SUCH_PAGE


def _unknown(page: Page) -> ScrapeError:
    what = "no series begins as an engine's does" if page.series else "the page is empty: no series at all"
    return ScrapeError(Reason.INCOMPLETE, what)


def _stranger(error: ScrapeError) -> ScrapeError:
    known = ", ".join(engine.title for engine in ENGINES.values())
    elsewhere = "".join(
        f"; {engine.title} has its page at {engine.path}: {engine.switch_on}"
        for engine in ENGINES.values()
        if engine.path != _FIRST
    )
    hint = elsewhere if error.reason is Reason.PARSE else f"; {_SWITCH_ON}?" if error.status in _NO_SUCH_PAGE else ""
    sentence = f"not a page of an engine that we know ({known}): {error}{hint}"
    return ScrapeError(error.reason, sentence, status=error.status, state=State.BROKEN)
