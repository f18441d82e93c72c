"""`make check`: in, the checkout and every version of the tools found; out, one line per check, and whether all hold.

It asks the tools that alone can judge: promtool, amtool, import-linter, Docker Compose.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from running import tools
from running.errors import ToolMissingError
from running.paths import BUILT, ROOT
from running.tools import Tool

RULES = ("prometheus/generated/rules", "alerts/generated/rules", "rules.d")
PROMETHEUS_CONFIG = "prometheus/generated/prometheus.yml"
ALERTMANAGER_CONFIG = "alerts/generated/alertmanager.yml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A command that exits 0 if what it claims holds."""

    claim: str
    command: tuple[str, ...]


def run(root: Path = ROOT) -> bool:
    """Run every check, print a line for each and all that a failing one says; answers whether all hold."""
    failed = [check for check in checks(root) if not _holds(check, root)]
    return not failed


def checks(root: Path) -> Iterator[Check]:
    """Answer what there is to check in the checkout; raises ToolMissingError."""
    yield _check("generated files are up to date", sys.executable, "generate.py", "--check")
    yield _check("fleet.yml is valid", sys.executable, "-m", "exporter", "check", "--fleet", "fleet.yml")
    yield _check("expressions in rules, boards and runbooks mean something", sys.executable, "-m", "prometheus.lint")
    rules = [path for directory in RULES for path in sorted((root / directory).glob("*.yml"))]
    for promtool in _every("promtool"):
        claim = f"{len(rules)} rule files ({promtool})"
        yield _check(claim, promtool.path, "check", "rules", "--lint-fatal", *rules)
        yield _check(f"{PROMETHEUS_CONFIG} ({promtool})", promtool.path, "check", "config", PROMETHEUS_CONFIG)
    for amtool in _every("amtool"):
        yield _check(f"{ALERTMANAGER_CONFIG} ({amtool})", amtool.path, "check-config", ALERTMANAGER_CONFIG)
    yield _check("imports go one way", Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo")
    if compose := _compose():
        yield _check("compose.yaml", *compose, "config", "--quiet")
    else:
        print("not checked: compose.yaml, because docker compose is not on this machine")


def _check(claim: str, *command: str | Path) -> Check:
    return Check(claim=claim, command=tuple(str(word) for word in command))


def _holds(check: Check, root: Path) -> bool:
    answer = subprocess.run(
        check.command,
        cwd=root,
        stdin=subprocess.DEVNULL,  # promtool reads rules from there when it is given no file
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print(f"{'FAILED' if answer.returncode else 'ok':<7}{check.claim}", flush=True)
    for warning in () if answer.returncode else answer.stdout.splitlines():
        if ": warning: " in warning:
            print(f"       {warning}", flush=True)
    if answer.returncode:
        print(f"$ {' '.join(check.command)}\n{answer.stdout.strip()}\n", flush=True)
    return answer.returncode == 0


def _every(name: str) -> tuple[Tool, ...]:
    found = tools.all_versions(name)
    if not found:
        raise ToolMissingError(tools.missing(name))
    return found


def _compose() -> list[str | Path] | None:
    for command in ([shutil.which("docker"), "compose"], [shutil.which("docker-compose")], [BUILT / "docker-compose"]):
        words = [word for word in command if word]
        if len(words) == len(command) and _runs([*words, "version"]):
            return words
    return None


def _runs(command: Sequence[str | Path]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False
