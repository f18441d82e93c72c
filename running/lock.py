"""One `make up` per checkout: in, a lock file; out, who holds it. The lock goes with its process, however that ends."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from running.errors import AlreadyUpError, RunningError

_WRITTEN_WITHIN_SECONDS = 2


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock for as long as the block runs; raises AlreadyUpError, which names the holder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyUpError(f"it is up already (pid {_pid(path)}): `make down` stops it") from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def holder(path: Path) -> int | None:
    """Answer the process that holds the lock; None if it is free."""
    if not path.exists():
        return None
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _pid(path)
    return None


def _pid(path: Path) -> int:
    """Read who holds the lock; whoever has just taken it writes its process id a moment later."""
    deadline = time.monotonic() + _WRITTEN_WITHIN_SECONDS
    while not (text := path.read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.01)
    if not text.isdecimal():
        raise RunningError(f"{path} is held by a process that has not said who it is: `fuser -v {path}` names it")
    return int(text)
