"""Honcho on a set of processes, in the foreground: in, commands; out, how it ended, with nothing left running.

Ends when somebody asks for it (SIGINT, SIGTERM, SIGHUP) or when a process ends by itself; either way all of them end.
"""

import os
import re
import signal
import sys
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import BinaryIO

from honcho.manager import SYSTEM_PRINTER_NAME, Manager
from honcho.printer import Message, Printer

from running import leftovers
from running.errors import ProcessDiedError
from running.paths import ROOT

GRACE_SECONDS = 8
_RETRY_SECONDS = 0.1
_STARTED = re.compile(r"(\S+) started \(pid=")
_STOPPED = re.compile(r"(\S+) stopped \(rc=(-?\d+)\)")
_RECEIVED = re.compile(r"(SIG\w+) received")


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """The first process that ended although nobody had asked for it."""

    name: str
    status: int

    def __str__(self) -> str:
        how = f"ended with status {self.status}"
        if self.status < 0:
            how = f"was ended by {signal.Signals(-self.status).name}"
        return f"{self.name} {how}"


class _Console(Printer):  # type: ignore[misc] # honcho ships no types
    """Shows what the processes say, keeps it in one log each, and notes from honcho's own lines how it ends.

    Honcho writes its own lines in signal handlers, where printing may meet a print in progress: those are not shown.
    """

    def __init__(self, logs: Path, quiet: Container[str]) -> None:
        super().__init__(sys.stdout)
        self._directory = logs
        self._quiet = quiet
        self._logs: dict[str, BinaryIO] = {}
        self.started = 0
        self.asked = False
        self.end: _End | None = None

    def write(self, message: Message) -> None:
        """Take one line of a process, or of honcho about a process."""
        if message.name == SYSTEM_PRINTER_NAME:
            self._note(message.data)
            return
        self._log(message.name).write(message.data)
        if message.name not in self._quiet:
            super().write(message)

    def _note(self, line: str) -> None:
        if _RECEIVED.match(line):
            self.asked = True
        elif _STARTED.match(line):
            self.started += 1
        elif (stopped := _STOPPED.match(line)) and not self.asked and self.end is None:
            self.end = _End(name=stopped[1], status=int(stopped[2]))

    def _log(self, name: str) -> BinaryIO:
        if name not in self._logs:
            self._logs[name] = self.log_of(name).open("wb", buffering=0)
        return self._logs[name]

    def log_of(self, name: str) -> Path:
        """Answer where the log of a process lies."""
        return self._directory / f"{name}.log"

    def close(self) -> None:
        """Close the logs."""
        for log in self._logs.values():
            log.close()


class _Foreground(Manager):  # type: ignore[misc] # honcho ships no types
    """Honcho's manager, for the two moments in which it would hang or stumble when it is told to stop."""

    def __init__(self, console: _Console, expected: int) -> None:
        super().__init__(console)
        self._console = console
        self._expected = expected

    def terminate(self) -> None:
        """Stop every process; kill those that still run after the grace.

        Honcho knows the children's process ids only after it has read that they started, and it kills by itself only
        after a first one has ended: the alarm comes back here for both.
        """
        if self._console.started < self._expected:
            signal.setitimer(signal.ITIMER_REAL, _RETRY_SECONDS)
            return
        signal.setitimer(signal.ITIMER_REAL, GRACE_SECONDS)
        super().terminate()

    def alarm(self, _number: int, _frame: FrameType | None) -> None:
        """Try again to stop, or lose patience."""
        if self._terminating:
            self.kill()
        else:
            self.terminate()


def foreground(
    commands: Mapping[str, str], environment: Mapping[str, str], *, run: Path, quiet: Container[str] = ()
) -> None:
    """Run the commands until somebody asks to stop; raises ProcessDiedError if one of them ends by itself.

    They start at the root of the checkout; their logs go to the directory of the run, and those of `quiet` only there.
    """
    logs = run / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **environment, **leftovers.mark(run)}
    console = _Console(logs, quiet)
    manager = _Foreground(console, len(commands))
    for name, command in commands.items():
        manager.add_process(name, command, env=environment, cwd=str(ROOT))
    signal.signal(signal.SIGHUP, _as_terminated)
    signal.signal(signal.SIGALRM, manager.alarm)
    try:
        manager.loop()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        leftovers.kill(run)
        console.close()
    if console.end:
        raise ProcessDiedError(_obituary(console.end, console.log_of(console.end.name)))


def _as_terminated(_number: int, _frame: FrameType | None) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def _obituary(end: _End, log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-10:] if log.exists() else []
    said = "\n".join(f"  {line}" for line in lines) or "  (it said nothing)"
    return f"{end}, so everything else was stopped; its last lines ({log}):\n{said}"
