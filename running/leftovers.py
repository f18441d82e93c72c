"""Processes that outlive their parent: in, a mark that they inherited in their environment; out, none of them left.

A process that leaves its group (a daemon, a worker in a session of its own) escapes its supervisor; its environment
does not change. Only Linux shows it, in /proc; elsewhere process groups have to be enough.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

_NAME = "SERVEWATCH_RUN"


def mark(run: Path) -> dict[str, str]:
    """Answer the environment that processes inherit; `run` is the directory of the run that they belong to."""
    return {_NAME: str(run)}


def kill(run: Path) -> int:
    """Kill every process of the run, and what those start meanwhile; answers how many."""
    killed = 0
    while found := tuple(_marked(f"{_NAME}={run}".encode())):
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
                killed += 1
            except ProcessLookupError:
                continue
    return killed


def _marked(entry: bytes) -> Iterator[int]:
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            marked = entry in (directory / "environ").read_bytes().split(b"\0")
        except OSError:  # it ended meanwhile, or is another user's
            continue
        if marked and int(directory.name) != os.getpid():
            yield int(directory.name)
