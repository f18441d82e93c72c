"""What a person meets first: `make` prints the commands, and a machine that lacks something is told what."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from running.paths import ROOT

COMMANDS = "help, setup, up, down, demo, test, check, generate, drill, bench, tools, fmt, lint, type, clean"


def _python(directory: Path, name: str, *, version: str, can_make_environments: bool) -> None:
    """Put a stand-in for an interpreter on the path: it answers what setup.sh asks one for."""
    script = directory / name
    new_enough = 0 if tuple(map(int, version.split("."))) >= (3, 11) else 1
    script.write_text(
        f'#!/bin/sh\ncase "$2" in\n*version_info*) exit {new_enough} ;;\n'
        f"*ensurepip*) exit {0 if can_make_environments else 1} ;;\nesac\necho Python {version}\n"
    )
    script.chmod(0o755)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Answer a checkout with nothing but setup.sh, and a PATH with only what that needs."""
    (tmp_path / "running").mkdir()
    shutil.copy(ROOT / "running/setup.sh", tmp_path / "running/setup.sh")
    (tmp_path / "path").mkdir()
    (tmp_path / "path/dirname").symlink_to(shutil.which("dirname") or "dirname")
    return tmp_path


def _setup(checkout: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    path = str(checkout / "path")
    command = ["/bin/sh", str(checkout / "running/setup.sh")]
    return subprocess.run(command, env={"PATH": path, **environment}, capture_output=True, text=True, check=False)


def test_make_alone_prints_every_command() -> None:
    printed = subprocess.run(
        ["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert ", ".join(line.split()[1] for line in printed.splitlines()) == COMMANDS


def test_an_old_python_is_told_which_one_is_needed(checkout: Path) -> None:
    _python(checkout / "path", "python3", version="3.9.2", can_make_environments=True)
    answer = _setup(checkout)
    assert answer.returncode == 1
    assert "needs Python 3.11 or newer; python3 is Python 3.9.2" in answer.stderr
    assert "make setup PYTHON=" in answer.stderr


def test_no_python_at_all_is_told_too(checkout: Path) -> None:
    answer = _setup(checkout)
    assert answer.returncode == 1
    assert "needs Python 3.11 or newer" in answer.stderr


def test_a_newer_python_beside_an_old_one_is_chosen(checkout: Path) -> None:
    _python(checkout / "path", "python3", version="3.9.2", can_make_environments=True)
    _python(checkout / "path", "python3.12", version="3.12.1", can_make_environments=False)
    assert "python3.12 cannot make virtual environments" in _setup(checkout).stderr


def test_a_missing_venv_module_is_named_with_its_package(checkout: Path) -> None:
    _python(checkout / "path", "python3", version="3.11.2", can_make_environments=False)
    answer = _setup(checkout)
    assert answer.returncode == 1
    assert "apt-get install python3-venv" in answer.stderr


def test_the_python_that_was_named_is_the_only_one_tried(checkout: Path) -> None:
    _python(checkout / "path", "python3", version="3.11.2", can_make_environments=True)
    _python(checkout / "path", "mine", version="3.10.0", can_make_environments=True)
    assert "mine is Python 3.10.0" in _setup(checkout, PYTHON="mine").stderr


def test_constraints_repeat_every_pin_of_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = {*project["dependencies"], *project["optional-dependencies"]["dev"]}
    constraints = {_normal(line) for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    assert {_normal(pin) for pin in pins} <= constraints


def _normal(pin: str) -> str:
    name, _, version = pin.partition("==")
    return f"{re.sub('[-_.]+', '-', name).lower()}=={version}"
