"""Start the simulator's commands as a person would, and end them."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Process:
    """A running command and the lines it has printed so far."""

    def __init__(self, *arguments: str) -> None:
        self.child = subprocess.Popen(
            [sys.executable, "-u", "-m", "simulator", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Read lines until one matches."""
        assert self.child.stdout is not None
        for line in self.child.stdout:
            self.lines.append(line)
            if match := re.search(pattern, line):
                return match
        raise AssertionError(f"it ended without {pattern!r}: {''.join(self.lines)}")

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
        """Ask it to stop; give its exit code and the seconds it took."""
        began = time.monotonic()
        self.child.send_signal(number)
        code = self.child.wait(timeout=10)
        return code, time.monotonic() - began


@contextmanager
def command(*arguments: str) -> Iterator[Process]:
    """Run a command; kill it if it is still there at the end."""
    process = Process(*arguments)
    try:
        yield process
    finally:
        if process.child.poll() is None:
            process.child.kill()
        process.child.wait()
        assert process.child.stdout is not None
        process.child.stdout.close()


@contextmanager
def phone(*arguments: str) -> Iterator[str]:
    """Run a phone on a free port; give its address."""
    with command("phone", "--listen", "127.0.0.1:0", *arguments) as process:
        yield process.wait_for(r"phone on (http://\S+)")[1]
