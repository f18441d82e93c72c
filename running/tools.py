"""Finds the programs we run but do not ship: in, a tool's name; out, where it is and its version.

Places, in order: PATH, .tools/bin (built by `make tools`), .tools/debian (Debian's packages, unpacked).
"""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from running.errors import ToolMissingError
from running.paths import BUILT, UNPACKED

_VERSION = re.compile(r"\d+(?:\.\d+)+")
_BUILD_HINT = "run `make tools` (needs Go)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A program found on this machine."""

    name: str
    path: Path
    version: str

    @property
    def release(self) -> tuple[int, ...]:
        """The version as numbers, so that versions can be compared."""
        return tuple(int(part) for part in self.version.split("."))

    def __str__(self) -> str:
        """Answer the name a person knows the tool by: `promtool 2.42.0`."""
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """What is known about a tool before it is found."""

    binaries: tuple[str, ...]
    debian: str
    says: str
    hint: str = ""


_KINDS = {
    "prometheus": _Kind(binaries=("prometheus",), debian="prometheus", says="prometheus", hint=_BUILD_HINT),
    "promtool": _Kind(binaries=("promtool",), debian="prometheus", says="promtool", hint=_BUILD_HINT),
    # Debian gives the binary the name of its package.
    "alertmanager": _Kind(
        binaries=("alertmanager", "prometheus-alertmanager"),
        debian="prometheus-alertmanager",
        says="alertmanager",
        hint=_BUILD_HINT,
    ),
    "amtool": _Kind(binaries=("amtool",), debian="prometheus-alertmanager", says="amtool", hint=_BUILD_HINT),
    "chromium": _Kind(binaries=("chromium", "chromium-browser", "google-chrome"), debian="chromium", says="chrom"),
}


def find(name: str) -> Path:
    """Answer the path of the preferred tool of that name; raises ToolMissingError, which says what to install."""
    for tool in _found(name):
        return tool.path
    raise ToolMissingError(missing(name))


def all_versions(name: str) -> tuple[Tool, ...]:
    """Answer every version of the tool on this machine, the preferred one first; empty if there is none."""
    by_version: dict[str, Tool] = {}
    for tool in _found(name):
        by_version.setdefault(tool.version, tool)
    return tuple(by_version.values())


def missing(name: str) -> str:
    """Say that a tool is missing and every way to get it."""
    kind = _KINDS[name]
    ways = [f"install Debian's package `{kind.debian}`", kind.hint, f"put {kind.binaries[0]} on PATH"]
    return f"{name} is not on this machine: looked on PATH, in .tools/bin and .tools/debian; " + ", or ".join(
        way for way in ways if way
    )


def directories() -> tuple[Path, ...]:
    """Answer the directories that are searched, in order."""
    on_path = (Path(entry) for entry in os.environ.get("PATH", "").split(os.pathsep) if entry)
    return (*on_path, BUILT, UNPACKED / "usr" / "bin")


def version_of(binary: Path, says: str) -> str | None:
    """Ask a binary for its version; None if it cannot run or names itself something else."""
    try:
        answer = subprocess.run(
            [binary, "--version"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=20,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = _VERSION.search(answer)
    return version.group() if version and says in answer.lower() else None


def _found(name: str) -> Iterator[Tool]:
    kind = _KINDS[name]
    seen: set[Path] = set()
    for directory in directories():
        for binary in (directory / candidate for candidate in kind.binaries):
            if not os.access(binary, os.X_OK) or binary.is_dir() or binary.resolve() in seen:
                continue
            seen.add(binary.resolve())
            if version := version_of(binary, kind.says):
                yield Tool(name=name, path=binary, version=version)
