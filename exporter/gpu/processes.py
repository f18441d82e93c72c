"""Processes: which local ports the server behind a GPU process listens on. In: /proc. Out: ports by process id.

An engine's workers hold the memory, and an ancestor of theirs listens. A process id of NVML is one of the host; in a
container it may name another process, so only one that has a GPU device open is believed.
"""

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["Processes"]

_LISTENING = "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")
_KEPT = 30.0  # seconds; a look through all open files is not free
_DEVICES = ("/dev/nvidia", "/dev/dxg", "/dev/kfd")


class Processes:
    """Looks processes up, and remembers what it found for half a minute."""

    def __init__(self, root: Path = Path("/proc")) -> None:
        self._root = root
        self._ports: dict[int, tuple[int, ...]] = {}
        self._until = 0.0
        self._sockets: dict[str, int] = {}

    def ports(self, pid: int) -> tuple[int, ...]:
        """Answer the ports that the process or the nearest ancestor listens on; none where that cannot be read."""
        now = time.monotonic()
        if now >= self._until:
            self._until = now + _KEPT
            self._ports.clear()
            self._sockets = dict(self._listening())
        if pid not in self._ports:
            self._ports[pid] = self._look(pid)
        return self._ports[pid]

    def _look(self, pid: int) -> tuple[int, ...]:
        if not any(name.startswith(_DEVICES) for name in self._open_files(pid)):
            return ()
        for each in self._line(pid):
            sockets = map(_SOCKET.match, self._open_files(each))
            found = {self._sockets[match[1]] for match in sockets if match and match[1] in self._sockets}
            if found:
                return tuple(sorted(found))
        return ()

    def _line(self, pid: int) -> Iterator[int]:
        """Yield the process and its ancestors, without init."""
        seen: set[int] = set()
        while pid > 1 and pid not in seen:
            seen.add(pid)
            yield pid
            try:
                # The name in parentheses may hold anything, so the fields are counted from its end.
                pid = int((self._root / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                return

    def _open_files(self, pid: int) -> Iterator[str]:
        """Yield what the process has open; a file that is closed meanwhile ends nothing."""
        try:
            entries = [entry.path for entry in os.scandir(self._root / str(pid) / "fd")]
        except OSError:
            return
        for entry in entries:
            with suppress(OSError):
                yield os.readlink(entry)  # noqa: PTH115 - a socket is no path

    def _listening(self) -> Iterator[tuple[str, int]]:
        """Yield inode and port of every listening TCP socket."""
        for table in ("tcp", "tcp6"):
            try:
                lines = (self._root / "net" / table).read_text().splitlines()[1:]
            except OSError:
                continue
            for line in lines:
                fields = line.split()
                if len(fields) > 9 and fields[3] == _LISTENING:  # noqa: PLR2004 - columns of /proc/net/tcp
                    yield fields[9], int(fields[1].rpartition(":")[2], 16)
