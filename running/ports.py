"""Loopback ports: in, a port; out, whether it is free and, if not, who listens there (as far as /proc tells)."""

import errno
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LOOPBACK = "127.0.0.1"
_LISTEN = "0A"  # state of a listening socket in /proc/net/tcp
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The process that listens on a port."""

    pid: int
    command: str

    def __str__(self) -> str:
        """Answer what a person needs to find the process."""
        return f"pid {self.pid}: {self.command}"


def free_port() -> int:
    """Answer a loopback port on which nothing listens now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    """Tell whether a server could listen on the loopback port; connections that are closing do not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True


def holder(port: int) -> Holder | None:
    """Answer who listens on the port; None if nobody does, or if the process belongs to somebody we may not look at."""
    links = {f"socket:[{inode}]" for inode in _listening(port)}
    for directory in _PROC.glob("[0-9]*") if links else ():
        if links.intersection(_open_files(directory)):
            return Holder(pid=int(directory.name), command=_command(directory))
    return None


def _listening(port: int) -> Iterator[str]:
    for table in (_PROC / "net/tcp", _PROC / "net/tcp6"):
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            fields = line.split()
            address, state, inode = fields[1], fields[3], fields[9]
            if state == _LISTEN and int(address.rpartition(":")[2], 16) == port:
                yield inode


def _open_files(process: Path) -> Iterator[str]:
    try:
        descriptors = list((process / "fd").iterdir())
    except OSError:  # it ended meanwhile, or is another user's
        return
    for descriptor in descriptors:
        try:
            yield str(descriptor.readlink())
        except OSError:
            continue


def _command(process: Path) -> str:
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return "(ended meanwhile)"
    return " ".join(word.decode(errors="replace") for word in words if word)
