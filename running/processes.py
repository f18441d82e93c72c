"""One process with a log: in, a command; out, a process that is ready, and leaves nothing behind when it is stopped."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from running.errors import NotReadyError, ProcessDiedError
from running.loopback import answers
from running.paths import ROOT

_POLL_SECONDS = 0.05
_REAPED_WITHIN_SECONDS = 1


class Process:
    """A running command in a process group of its own, so that what it forks is stopped with it."""

    def __init__(self, name: str, popen: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.log = log
        self._popen = popen

    @classmethod
    def start(
        cls,
        name: str,
        command: Sequence[str | Path],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
        directory: Path = ROOT,
    ) -> Self:
        """Start a command that writes stdout and stderr to the log; the environment is added to ours."""
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            popen = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                cwd=directory,
                start_new_session=True,
            )
        return cls(name, popen, log)

    @property
    def pid(self) -> int:
        """The process id, which is also its group's."""
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        """The exit status; None while it runs."""
        return self._popen.poll()

    def log_tail(self, lines: int = 20) -> str:
        """Answer the last lines of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def wait_ready(self, url: str, *, seconds: float = 30) -> Self:
        """Wait until the address answers 200; raises ProcessDiedError or NotReadyError with the end of the log."""
        self.wait_until(lambda: answers(url), f"answer 200 on {url}", seconds=seconds)
        return self

    def wait_until(self, condition: Callable[[], bool], claim: str, *, seconds: float = 30) -> None:
        """Wait until a condition holds while the process lives; `claim` completes "did not …" in the error."""
        deadline = time.monotonic() + seconds
        while not condition():
            if self.returncode is not None:
                raise ProcessDiedError(
                    f"{self.name} ended with status {self.returncode}; its last lines:\n{self.log_tail()}"
                )
            if time.monotonic() > deadline:
                raise NotReadyError(
                    f"{self.name} did not {claim} within {seconds:g} s; its last lines:\n{self.log_tail()}"
                )
            time.sleep(_POLL_SECONDS)

    def wait(self, *, seconds: float = 30) -> int:
        """Wait until the process ends by itself; answers its exit status, raises NotReadyError."""
        try:
            return self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise NotReadyError(
                f"{self.name} did not end within {seconds:g} s; its last lines:\n{self.log_tail()}"
            ) from None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process alone, as a crash or the kernel would (SIGKILL, SIGSTOP, SIGHUP)."""
        self._popen.send_signal(number)

    def stop(self, *, grace_seconds: float = 5) -> None:
        """End the process and everything in its group: SIGTERM, then after the grace SIGKILL."""
        _signal_group(self.pid, signal.SIGTERM)
        _signal_group(self.pid, signal.SIGCONT)  # a frozen process cannot obey
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(grace_seconds)
        _signal_group(self.pid, signal.SIGKILL)
        self._popen.wait()
        _wait_for_the_end_of(self.pid)

    def __enter__(self) -> Self:
        """Answer the process itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it, whatever happened."""
        self.stop()


def _wait_for_the_end_of(group: int) -> None:
    """Wait until killed orphans of the group are gone; not for ever, since some containers' init never reaps them."""
    deadline = time.monotonic() + _REAPED_WITHIN_SECONDS
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(group, 0)
            time.sleep(_POLL_SECONDS)


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return
