"""`make check`: a line per check, all that a failing one says, and warnings even of one that holds."""

import sys
from pathlib import Path

import pytest

from running.check import Check, _holds, checks


def _saying(text: str, status: int) -> Check:
    return Check(claim="a claim", command=(sys.executable, "-c", f"print({text!r}); raise SystemExit({status})"))


def test_a_check_that_holds_says_only_its_warnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _holds(_saying("fine\na.yml:1:2: warning: careful; do this (x)", 0), tmp_path)
    assert capsys.readouterr().out == "ok     a claim\n       a.yml:1:2: warning: careful; do this (x)\n"


def test_a_check_that_fails_says_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not _holds(_saying("a.yml:1:2: wrong; do this (x)", 1), tmp_path)
    out = capsys.readouterr().out
    assert out.startswith("FAILED a claim\n$ ")
    assert "a.yml:1:2: wrong; do this (x)" in out


def test_own_rules_are_judged_by_promtool_and_by_the_lint(tmp_path: Path) -> None:
    (tmp_path / "rules.d").mkdir()
    (tmp_path / "rules.d/own.yml").write_text("groups: []\n", encoding="utf-8")
    commands = [check.command for check in checks(tmp_path)]
    own = str(tmp_path / "rules.d/own.yml")
    assert any("--lint-fatal" in command and own in command for command in commands)
    assert (sys.executable, "-m", "prometheus.lint") in commands
