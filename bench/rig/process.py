"""What a process has used so far, from /proc. In: a process id. Out: CPU seconds, memory, files, threads."""

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Use", "use"]

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """CPU seconds of all threads since the start (in steps of 10 ms), resident bytes, open files, threads."""

    cpu: float
    memory: int
    files: int
    threads: int

    @property
    def mebibytes(self) -> float:
        """Resident memory in MiB."""
        return self.memory / 2**20


def use(pid: int) -> Use:
    """Read what a process has used until now."""
    proc = Path("/proc") / str(pid)
    fields = (proc / "stat").read_text().rpartition(")")[2].split()
    return Use(
        cpu=(int(fields[11]) + int(fields[12])) / _TICKS,
        memory=int((proc / "statm").read_text().split()[1]) * _PAGE,
        files=len(list((proc / "fd").iterdir())),
        threads=int(fields[17]),
    )
