"""A network of its own for the product's fixed ports: in, a command; out, a process that shares no port with others.

Linux network namespaces: as root, or where the kernel lets users make them.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from running.processes import Process

_IS_ROOT = os.geteuid() == 0
_NEW = ["unshare", "--net"] if _IS_ROOT else ["unshare", "--user", "--map-root-user", "--net"]
_ENTER = ["nsenter", "--net"] if _IS_ROOT else ["nsenter", "--user", "--preserve-credentials", "--net"]
_ASK = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=5).read().decode())"


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A loopback interface that only its own processes see."""

    pid: int

    def command(self, *words: str | Path) -> list[str]:
        """Answer the command that runs `words` inside."""
        return [*_ENTER, f"--target={self.pid}", "--", *map(str, words)]

    def python(self, *words: str | Path) -> str:
        """Run our Python inside; answers what it prints."""
        command = self.command(sys.executable, *words)
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    def ask(self, url: str) -> str:
        """Answer the page at the address."""
        return self.python("-c", _ASK, url)


@contextmanager
def network(log: Path) -> Iterator[Network]:
    """Give a network for as long as the block runs."""
    up = "ip link set lo up && echo ready && exec sleep 3600"
    with Process.start("network", [*_NEW, "/bin/sh", "-c", up], log=log) as holder:
        holder.wait_until(lambda: "ready" in holder.log_tail(), "bring up a loopback interface of its own")
        yield Network(pid=holder.pid)
