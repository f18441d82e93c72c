"""Finding tools: every version counts, Debian's names are known, and a missing tool says what to install."""

import subprocess
import sys
from pathlib import Path

import pytest

from running import tools
from running.errors import ToolMissingError
from running.paths import ROOT
from running.tools import Tool


def _script(path: Path, says: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Answer a machine with nothing on it: an empty PATH, no built and no unpacked tools."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}")
    monkeypatch.setattr(tools, "BUILT", tmp_path / "built")
    monkeypatch.setattr(tools, "UNPACKED", tmp_path / "unpacked")
    return tmp_path


@pytest.mark.usefixtures("machine")
def test_a_missing_tool_says_what_to_install() -> None:
    with pytest.raises(ToolMissingError) as error:
        tools.find("alertmanager")
    assert str(error.value) == (
        "alertmanager is not on this machine: looked on PATH, in .tools/bin and .tools/debian; "
        "install Debian's package `prometheus-alertmanager`, or run `make tools` (needs Go), "
        "or put alertmanager on PATH"
    )


def test_path_comes_before_what_make_tools_built(machine: Path) -> None:
    _script(machine / "path/promtool", "promtool, version 2.42.0+ds (branch: debian/sid)")
    _script(machine / "built/promtool", "promtool, version 3.16.0 (branch: , revision: )")
    assert tools.find("promtool") == machine / "path/promtool"
    assert [str(tool) for tool in tools.all_versions("promtool")] == ["promtool 2.42.0", "promtool 3.16.0"]


def test_one_version_in_two_places_counts_once(machine: Path) -> None:
    _script(machine / "path/amtool", "amtool, version 0.35.0")
    _script(machine / "unpacked/usr/bin/amtool", "amtool, version 0.35.0")
    assert tools.all_versions("amtool") == (Tool(name="amtool", path=machine / "path/amtool", version="0.35.0"),)


def test_debian_calls_alertmanager_by_its_package(machine: Path) -> None:
    _script(machine / "unpacked/usr/bin/prometheus-alertmanager", "alertmanager, version 0.25.0 (branch: debian/sid)")
    assert tools.find("alertmanager") == machine / "unpacked/usr/bin/prometheus-alertmanager"


@pytest.mark.parametrize("says", ["something else 2.0.0", "prometheus without a number", ""])
def test_a_program_of_the_same_name_is_not_taken_for_the_tool(machine: Path, says: str) -> None:
    _script(machine / "path/prometheus", says)
    assert tools.all_versions("prometheus") == ()


def test_a_file_that_cannot_run_is_passed_over(machine: Path) -> None:
    (machine / "path/prometheus").mkdir(parents=True)
    _script(machine / "built/prometheus", "prometheus, version 3.16.0")
    (machine / "unpacked/usr/bin").mkdir(parents=True)
    (machine / "unpacked/usr/bin/prometheus").write_bytes(b"\x7fELF truncated")
    (machine / "unpacked/usr/bin/prometheus").chmod(0o755)
    assert [tool.version for tool in tools.all_versions("prometheus")] == ["3.16.0"]


def test_versions_compare_as_numbers() -> None:
    old, new = (Tool(name="promtool", path=Path("promtool"), version=version) for version in ("2.42.0", "10.0.1"))
    assert old.release < new.release


def test_this_machine_has_the_tools_the_suite_needs(
    promtools: Tool, amtools: Tool, prometheus_binaries: Tool, alertmanager_binaries: Tool
) -> None:
    for tool in (promtools, amtools, prometheus_binaries, alertmanager_binaries):
        assert tool.path.exists()
        assert tool in tools.all_versions(tool.name)


def test_nothing_is_fetched_where_every_program_is_there() -> None:
    command = [sys.executable, "-m", "running", "ensure"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout == ""
