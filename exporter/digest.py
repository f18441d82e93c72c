"""Digest: parser and normaliser at work on one page; on a large one in a thread, so that no other replica waits for it.

A thread gives way every few milliseconds, the event loop does not. One thread is enough, large pages wait for each
other. They have memories of their own: ever new labels on a page must not push out what all the other pages need.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from exporter.normalise import Normaliser
from exporter.objectives import Slos
from exporter.parse import Parser

__all__ = ["LARGE", "Digest"]

LARGE = 256 * 2**10
"""Bytes; five times vLLM's page. Read for the first time, a page of this size holds the event loop for some 20 ms."""
_LEAST = 2**21
_OF_REPLICA = 2**15
"""Characters of a page's series that are worth remembering for each replica: what vLLM's page has.

Whoever changes its labels with each scrape fills this memory, so that it has to be as small as the fleet allows.
"""
_Result = TypeVar("_Result")


class Digest:
    """Parsers and normalisers for one fleet's objectives."""

    def __init__(self) -> None:
        self._parser = Parser()
        self._large_parser = Parser()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="large-pages")
        self.use(Slos(), 0)

    def use(self, slos: Slos, replicas: int) -> None:
        """Normalise for these objectives, and pages of so many replicas, from now on."""
        limit = max(_LEAST, _OF_REPLICA * replicas)
        self._parser.limit = self._large_parser.limit = 2 * limit
        self._normaliser = Normaliser(slos, limit)
        self._large_normaliser = Normaliser(slos, limit)

    async def apply(self, size: int, work: Callable[[Parser, Normaliser], _Result]) -> _Result:
        """Do some work on a page of so many bytes where it delays nobody."""
        if size <= LARGE:
            return work(self._parser, self._normaliser)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, work, self._large_parser, self._large_normaliser)

    def close(self) -> None:
        """Take no more work."""
        self._thread.shutdown(wait=False, cancel_futures=True)
