"""Sight: who should tell of cards and cannot. In: the catalogue, fleet.yml. Out: expressions about sources.

A page that fleet.yml names should always answer, to one exporter at least. A host without cards has no driver, or none
that finds a card, and that is nobody's trouble unless there were cards before.
"""

from datetime import timedelta

from exporter.address import server
from exporter.catalogue import (
    GPU_COLLECTOR_CARDS,
    GPU_COLLECTOR_FAILURE,
    GPU_COLLECTOR_UP,
    GPU_FAILURE,
    GPU_ORIGIN,
    GPU_SOURCE,
)
from exporter.fleet import Fleet
from prometheus.promql import Expr, Matcher
from prometheus.series import last_known, select
from prometheus.stack import INSTANCE, JOB, UP
from prometheus.windows import TILE

__all__ = ["WHY_DRIVER", "WHY_PAGE", "out_of_sight", "sources_down"]

_DAY = timedelta(days=1)

_DRIVER = Matcher.equal(GPU_SOURCE, "nvml")
_PAGE = Matcher.unequal(GPU_SOURCE, "nvml")
_GONE = ("no_library", "no_driver")
_WITHOUT_CARDS = (*_GONE, "no_gpu")
_OF_PAGE, _OF_DRIVER = (GPU_SOURCE, GPU_ORIGIN), (GPU_SOURCE, INSTANCE)
_ARGUMENT = "%[1]q"

WHY_PAGE = select(GPU_COLLECTOR_FAILURE, _PAGE, Matcher.equal(GPU_ORIGIN, _ARGUMENT))
WHY_DRIVER = select(GPU_COLLECTOR_FAILURE, _DRIVER, Matcher.equal(INSTANCE, _ARGUMENT))


def out_of_sight() -> Expr:
    """Find whoever cannot tell of cards now, whether there are any behind it or not."""
    return _pages().union(_drivers(), _silent())


def sources_down(fleet: Fleet) -> Expr:
    """Find sources that cannot tell of their cards; the value is how many they told of when they could, 0 if unknown.

    An exporter that does not answer Prometheus takes with it what it told; it is missed where it told of cards within
    a day, or where fleet.yml names it for its cards.
    """
    had = select(GPU_COLLECTOR_CARDS).over_time("max", _DAY, step=TILE.span).aggregate("sum", INSTANCE)
    down = _pages().union(_drivers(), had.compare(">", 0).intersect(_silent()))
    hosts = tuple(dict.fromkeys(spelling for url in fleet.gpus.exporters for spelling in _spellings(url)))
    return down.union(_silent(Matcher.among(INSTANCE, hosts)) * 0) if hosts else down


def _spellings(url: str) -> tuple[str, ...]:
    """Answer what Prometheus may call a target: 2.x adds the port where it is not said."""
    host, port = server(url)
    named = url.partition("//")[2]
    return (named, f"[{host}]:{port}" if ":" in (host or "") else f"{host}:{port}")


def _silent(*matchers: Matcher) -> Expr:
    return select(UP, Matcher.equal(JOB, "gpu"), *matchers).aggregate("max", INSTANCE).compare("==", 0)


def _pages() -> Expr:
    unread = last_known(GPU_COLLECTOR_UP, _PAGE).aggregate("max", *_OF_PAGE).compare("==", 0)
    return last_known(GPU_COLLECTOR_CARDS, _PAGE).aggregate("max", *_OF_PAGE).intersect(unread)


def _drivers() -> Expr:
    cards = last_known(GPU_COLLECTOR_CARDS, _DRIVER).aggregate("max", *_OF_DRIVER)
    ill, gone = (
        last_known(GPU_COLLECTOR_FAILURE, _DRIVER, matcher).aggregate("max", *_OF_DRIVER)
        for matcher in (Matcher.outside(GPU_FAILURE, _WITHOUT_CARDS), Matcher.among(GPU_FAILURE, _GONE))
    )
    return cards.intersect(ill).union(cards.compare(">", 0).intersect(gone))
