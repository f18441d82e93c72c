"""Worker: the one process that asks the driver. In: a question with a budget. Out: a `Snapshot`, in time, always.

A call that hangs in the driver may be unkillable. Then there is one such process and never a second one: until it is
gone, every question is answered at once with what is known, that it hangs.
"""

import asyncio
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from exporter.gpu.reading import Failure, Snapshot, SourceError
from exporter.gpu.wire import snapshot

__all__ = ["Worker"]

_COMMAND = (sys.executable, "-m", "exporter.gpu")
_ROOT = Path(__file__).resolve().parents[2]
_LINE_LIMIT = 2**22
_GOODBYE = 0.6  # seconds for the worker to end its session with the driver
_LAST_WAIT = 0.3  # seconds for the kernel to end a worker that was killed; in a hung driver it may take for ever


class Worker:
    """Asks one question at a time. `patience` and `rest` in seconds.

    After `patience` without an answer the process is killed. A driver that cannot be asked, or cards in trouble, make
    a new process after `rest`: only a new session sees a driver that was loaded, or a card that was reset.
    """

    def __init__(self, command: Sequence[str] = _COMMAND, *, patience: float = 30.0, rest: float = 60.0) -> None:
        self._command = command
        self._patience = patience
        self._rest = rest
        self._process: Process | None = None
        self._leaving: Process | None = None
        self._asked_at = 0.0
        self._started_at = 0.0
        self._retired_at = 0.0
        self._task: asyncio.Task[Snapshot] | None = None
        self._failed = Snapshot()
        self._rest_until = 0.0

    async def read(self, budget: float) -> Snapshot:
        """Ask, and answer within `budget` seconds."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._ask())
        await asyncio.wait({self._task}, timeout=budget)
        if self._task.done() and not self._task.cancelled():
            return self._task.result()
        return _hangs(time.monotonic() - self._asked_at)

    async def close(self) -> None:
        """Let the process end its session; one that does not is killed and not waited for."""
        if self._task is not None:
            self._task.cancel()
        self._retire()
        if self._leaving is not None:
            for end in (_GOODBYE, _LAST_WAIT):
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._leaving.wait(), end)
                    return
                _kill(self._leaving)

    async def _ask(self) -> Snapshot:
        if time.monotonic() < self._rest_until:
            return self._failed
        await self._let_go()
        if self._is_leaving():
            return _hangs(time.monotonic() - self._asked_at)
        try:
            answer = await self._converse()
        except SourceError as error:
            answer = Snapshot(failure=error.failure, sentence=str(error))
        if answer.failure is not None:
            self._failed, self._rest_until = answer, time.monotonic() + self._rest
            self._retire()
            return answer
        self._failed = Snapshot()
        if not all(reading.up for reading in answer.readings) and time.monotonic() - self._started_at > self._rest:
            self._retire()
        return answer

    async def _converse(self) -> Snapshot:
        self._asked_at = time.monotonic()
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=PIPE, stdout=PIPE, limit=_LINE_LIMIT, cwd=_ROOT
            )
            self._started_at = self._asked_at
        process = self._process
        assert process.stdin is not None and process.stdout is not None  # noqa: PT018, S101 - both are pipes
        try:
            process.stdin.write(b"\n")
            text = await asyncio.wait_for(process.stdout.readline(), self._patience)
            return snapshot(text)
        except TimeoutError:
            self._process, self._leaving = None, process
            _kill(process)
            raise SourceError(Failure.TIMEOUT, _SENTENCE.format(self._patience)) from None
        except (OSError, ValueError, KeyError, TypeError):
            raise SourceError(
                Failure.CRASHED, "the process that asks the driver ended without an answer; its words are in our log"
            ) from None

    def _retire(self) -> None:
        """Let the process end by itself; a new one starts once it is gone."""
        if self._process is not None:
            process, self._process = self._process, None
            self._leaving = process
            self._retired_at = time.monotonic()
            if process.stdin is not None:
                process.stdin.close()

    async def _let_go(self) -> None:
        """Give a process that was asked to end the time that this takes, so that nobody takes it for one that hangs."""
        left = self._retired_at + _GOODBYE - time.monotonic()
        if self._leaving is not None and left > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._leaving.wait(), left)

    def _is_leaving(self) -> bool:
        """Tell whether an old process is still there, and kill it if it has had its time."""
        if self._leaving is None:
            return False
        if self._leaving.returncode is None:
            if time.monotonic() - self._asked_at > self._patience:
                _kill(self._leaving)
            return True
        self._leaving = None
        return False


_SENTENCE = "the driver has not answered for {:.0f} s: a call hangs in it; read `dmesg` for Xid 119, 120 or 79"


def _hangs(seconds: float) -> Snapshot:
    return Snapshot(failure=Failure.TIMEOUT, sentence=_SENTENCE.format(seconds))


def _kill(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
