"""Finds Docker Compose: in, this machine; out, the command of each version on it, the newest first."""

import re
import shutil
import subprocess
from dataclasses import dataclass

from running import tools
from running.errors import ToolMissingError

MISSING = (
    "Docker Compose is not on this machine: install Debian's package docker-compose, or the plugin of Docker's own"
)
_VERSION = re.compile(r"\d+(?:\.\d+)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compose:
    """One Docker Compose: the plugin (`docker compose`), or a program of its own (`docker-compose`)."""

    command: tuple[str, ...]
    version: str

    @property
    def release(self) -> tuple[int, ...]:
        """The version as numbers, so that versions can be compared."""
        return tuple(int(part) for part in self.version.split("."))

    def __str__(self) -> str:
        """Answer what a person knows it by: `docker-compose 1.29.2`."""
        return f"{self.command[-1]} {self.version}"


def all_versions() -> tuple[Compose, ...]:
    """Answer every Compose on this machine, the newest first; empty if there is none."""
    programs = [
        (str(place / "docker-compose"),) for place in tools.directories() if (place / "docker-compose").is_file()
    ]
    found: dict[str, Compose] = {}
    for command in [("docker", "compose"), *programs]:
        if shutil.which(command[0]) and (version := _version(command)):
            found.setdefault(version, Compose(command=command, version=version))
    return tuple(sorted(found.values(), key=lambda compose: compose.release, reverse=True))


def newest() -> Compose:
    """Answer the newest Compose on this machine; raises ToolMissingError if there is none."""
    for compose in all_versions():
        return compose
    raise ToolMissingError(MISSING)


def _version(command: tuple[str, ...]) -> str | None:
    answer = subprocess.run([*command, "version", "--short"], capture_output=True, text=True, check=False)
    found = _VERSION.search(answer.stdout)
    return found.group() if found and answer.returncode == 0 else None
