"""One `make up` per checkout: in, a lock file; out, who holds it. The lock goes with its process, however that ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from running.errors import AlreadyUpError


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
    return int(path.read_text() or 0)
