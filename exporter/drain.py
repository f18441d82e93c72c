"""Drain: which replicas are marked as being drained, until when, by whom; kept over restarts, ended by time.

In: marks and their removal. Out: the marker of a replica. Every change is a line in the log.
"""

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from exporter import storage

__all__ = ["LONGEST", "Drain", "Drains"]

LONGEST = timedelta(hours=24)
"""A forgotten marker silences a replica, so it cannot be for ever."""
_FILE = "drains.json"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """A marker: it holds until that Unix time; `by` says who set it."""

    until: float
    by: str

    @property
    def end(self) -> str:
        """Until when, as people write it."""
        return datetime.fromtimestamp(self.until, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Drains:
    """Drain markers by replica name, in memory and, with a directory, on disk."""

    def __init__(self, directory: Path | None, clock: Callable[[], float] = time.time) -> None:
        """Read the markers of an earlier run; those whose time is up end now."""
        self._file = directory / _FILE if directory else None
        self._clock = clock
        self._marked = _read(self._file, clock() + LONGEST.total_seconds()) if self._file else {}
        self._writing = asyncio.Lock()
        self._is_on_disk = True

    def of(self, name: str) -> Drain | None:
        """Answer the marker of a replica, if it has one whose time is not up."""
        drain = self._marked.get(name)
        return drain if drain is not None and drain.until > self._clock() else None

    def all(self) -> dict[str, Drain]:
        """Answer every marker whose time is not up, in the order of names."""
        return {name: drain for name in sorted(self._marked) if (drain := self.of(name)) is not None}

    async def mark(self, name: str, ttl: timedelta, by: str) -> tuple[Drain, bool]:
        """Mark a replica, or change until when; answer the marker, and whether it outlives a restart."""
        drain = self._marked[name] = Drain(until=self._clock() + ttl.total_seconds(), by=by)
        _log.info("drain of %s until %s: marked by %s", name, drain.end, by)
        return drain, await self._keep()

    async def unmark(self, name: str, by: str) -> bool:
        """Remove a marker; answer whether there was one."""
        there = self.of(name) is not None
        if self._marked.pop(name, None) is not None:
            _log.info("drain of %s ended: removed by %s", name, by)
            await self._keep()
        return there

    async def expire(self) -> None:
        """Forget markers whose time is up; bring to disk what could not be written before."""
        over = [name for name in self._marked if self.of(name) is None]
        for name in over:
            drain = self._marked.pop(name)
            _log.info("drain of %s ended: its time was up, marked by %s until %s", name, drain.by, drain.end)
        if over or not self._is_on_disk:
            await self._keep()

    async def _keep(self) -> bool:
        if self._file is None:
            return False
        async with self._writing:
            content = {name: asdict(drain) for name, drain in self._marked.items()}
            self._is_on_disk = await asyncio.to_thread(storage.write, self._file, content, lost="drain markers")
        return self._is_on_disk


def _read(file: Path, latest: float) -> dict[str, Drain]:
    stored = storage.read(file, without="drain markers")
    return {
        name: Drain(until=min(float(entry["until"]), latest), by=entry["by"])
        for name, entry in stored.items()
        if _is_drain(entry)
    }


def _is_drain(entry: object) -> bool:
    return (
        isinstance(entry, Mapping)
        and entry.keys() == {"until", "by"}
        and isinstance(entry["until"], int | float)
        and 0 < entry["until"] <= sys.float_info.max
        and isinstance(entry["by"], str)
        and entry["by"].isprintable()
    )
