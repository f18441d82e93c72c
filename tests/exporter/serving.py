"""The exporter as a process of its own, the way it is run in production."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from running.ports import free_port
from running.processes import Process

BUSY = 10.0
"""Seconds that a machine under load may take on top of what is promised; whatever hangs in tests does so for longer."""


@contextmanager
def exporter(fleet: Path, log: Path, *options: str) -> Iterator[tuple[str, Process]]:
    """Serve a fleet until the block ends; yield the address http://host:port and the process."""
    listen = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "exporter", "serve", "--fleet", str(fleet), "--listen", listen, *options]
    with Process.start("exporter", command, log=log) as process:
        process.wait_ready(f"http://{listen}/-/ready")
        yield f"http://{listen}", process


def write_fleet(file: Path, **urls: str) -> Path:
    """Write a fleet file of vLLM and other replicas by name; dashes in names are written as underscores."""
    lines = [f'  - {{name: {name.replace("_", "-")}, url: "{url}"}}' for name, url in urls.items()]
    file.write_text("replicas:\n" + "\n".join(lines) + "\n")
    return file
