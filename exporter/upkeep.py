"""Upkeep: what is done without anyone asking. In: a service. Out: files that changed are taken into use, news kept."""

import asyncio
import logging
from contextlib import suppress

from exporter.service import Service
from exporter.web import Web

__all__ = ["Upkeep"]

_log = logging.getLogger(__name__)
_INTERVAL = 1.0  # seconds; a change is taken when two looks in a row have seen it
_RETRY = 10.0
"""Seconds; what is wrong with a fleet may lie outside its files, such as a secret that is not there yet."""


class Upkeep:
    """A task that looks after a service until it is closed. Made inside a running event loop."""

    def __init__(self, service: Service, web: Web | None = None) -> None:
        self._service = service
        self._web = web
        self._asked = asyncio.Event()
        self._read_at = 0.0
        self._task = asyncio.create_task(self._run())

    def reload_now(self) -> None:
        """Have the fleet read again at once."""
        self._asked.set()

    async def close(self) -> None:
        """End the task."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), _INTERVAL)
            try:
                await self._tend()
            except Exception:  # noqa: BLE001 - whatever it was, the next round must come
                _log.exception("upkeep failed, and is tried again")

    async def _tend(self) -> None:
        if self._asked.is_set() or await self._service.fleet_changed() or self._is_retry_due():
            self._asked.clear()
            self._read_at = asyncio.get_running_loop().time()
            await self._service.reload_or_keep()
        await self._service.keep()
        if self._web is not None:
            await asyncio.to_thread(self._web.refresh)

    def _is_retry_due(self) -> bool:
        return bool(self._service.refused) and asyncio.get_running_loop().time() - self._read_at > _RETRY
