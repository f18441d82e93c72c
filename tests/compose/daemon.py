"""A Docker daemon to test on: in, this machine; out, the address of one that runs containers, or why there is none.

Always one of our own, with its own storage: a daemon of the machine must neither lend us stale images nor keep our
stand-ins under the names of official ones.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from running.errors import RunningError, ToolMissingError
from running.processes import Process

_START_SECONDS = 30
_STOP_SECONDS = 20
_DAEMON_REFUSED = 125  # `docker run`: the daemon could not start the container; other statuses are the container's own
# Our daemon leaves the machine's network alone: no default bridge, no packet filter, no forwarding. Containers reach
# each other over the bridge that compose makes, published ports go through Docker's own proxy, and nothing gets out.
_NETWORK = ("--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false")


class NoDockerError(RunningError):
    """A Docker daemon is installed, was tried, and cannot run here."""


@contextlib.contextmanager
def environment() -> Iterator[Mapping[str, str]]:
    """Give the variables that lead docker to a daemon that lives as long as the block."""
    for program, package in (("docker", "docker.io or docker-cli"), ("dockerd", "docker.io")):
        if shutil.which(program) is None:
            raise ToolMissingError(f"{program} is not on PATH: install Debian's package {package}")
    directory = Path(tempfile.mkdtemp(prefix="servewatch-docker-"))  # short: a socket's path has at most 107 characters
    try:
        with _started(directory) as variables:
            yield variables
    finally:
        shutil.rmtree(directory)


def prove(variables: Mapping[str, str], *, image: str) -> None:
    """Run a container on a network of its own, as compose would; raises NoDockerError with the daemon's own words."""
    network = f"servewatch-probe-{os.getpid()}"
    try:
        for command in (
            ["network", "create", network],
            ["run", "--rm", "--pull=never", f"--network={network}", "--entrypoint=/bin/true", image],
        ):
            done = _docker(command, variables)
            if done.returncode == _DAEMON_REFUSED or (done.returncode and command[0] == "network"):
                raise NoDockerError(f"no container can run on this machine: {done.stderr.strip()}")
            assert done.returncode == 0, done.stderr
    finally:
        _docker(["network", "rm", network], variables)


@contextlib.contextmanager
def _started(directory: Path) -> Iterator[Mapping[str, str]]:
    host = f"unix://{directory / 'docker.sock'}"
    # The classic builder comes with the daemon; BuildKit's client is a plugin that may be missing.
    variables = {"DOCKER_HOST": host, "DOCKER_BUILDKIT": "0", "COMPOSE_DOCKER_CLI_BUILD": "0"}
    process = Process.start(
        "dockerd",
        [
            "dockerd",
            f"--host={host}",
            f"--data-root={directory / 'data'}",
            f"--exec-root={directory / 'exec'}",
            f"--pidfile={directory / 'pid'}",
            *_NETWORK,
        ],
        log=directory / "log",
    )
    try:
        try:
            process.wait_until(lambda: _answers(variables), "answer `docker info`", seconds=_START_SECONDS)
        except RunningError as error:
            raise NoDockerError(f"no Docker daemon can run on this machine: {error}") from error
        yield variables
    finally:
        process.stop(grace_seconds=_STOP_SECONDS)


def _answers(variables: Mapping[str, str]) -> bool:
    return _docker(["info", "--format", "{{.ServerVersion}}"], variables).returncode == 0


def _docker(arguments: list[str], variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run(["docker", *arguments], env=environment, capture_output=True, text=True, check=False)
