"""The command: a line per problem, exit 1 for errors; without files everything that is shipped."""

import subprocess
import sys
from pathlib import Path

import pytest

from prometheus.lint import __main__ as command
from tests.prometheus.lint.mistakes import alert

ROOT = Path(command.__file__).resolve().parents[2]


def test_problems_are_printed_as_compilers_print_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "own.yml"
    file.write_text(
        alert(("by (model)", "by (modle)"), ("$labels.model", "it"), ("runbook_url", "more")), encoding="utf-8"
    )
    assert command.main([str(file)]) == 1
    warning, *errors = capsys.readouterr().out.splitlines()
    assert warning.startswith(f"{file}:4:5: warning: ModelIdle has no runbook; ")
    assert [line.partition(": ")[0] for line in errors] == [f"{file}:5:11"]


def test_warnings_alone_are_no_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "own.yml"
    file.write_text(alert(("runbook_url", "more")), encoding="utf-8")
    assert command.main([str(file)]) == 0
    assert "warning" in capsys.readouterr().out


def test_everything_shipped_is_judged_without_files() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "prometheus.lint"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_own_rules_are_judged_beside_what_is_shipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = tmp_path / "fleet.yml"
    fleet.write_text((ROOT / "fleet.yml").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "rules.d").mkdir()
    (tmp_path / "rules.d/own.yml").write_text(alert(("ModelIdle", "LLMModelDown")), encoding="utf-8")
    assert command.main(["--fleet", str(fleet)]) == 1
    assert "own.yml:4:5: LLMModelDown is Servewatch's own: " in capsys.readouterr().out


def test_a_file_that_is_no_text_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.yml").write_bytes("groups: [{name: größe}]".encode("latin-1"))
    assert command.main([str(tmp_path / "own.yml")]) == 1
    assert f"{tmp_path / 'own.yml'}: expected UTF-8 text: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.txt", "expected a file ending in .yml"),
        ("none.yml", "none.yml: cannot be read: No such file or directory; give the path"),
    ],
)
def test_a_file_that_cannot_be_judged_is_named(
    name: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([str(tmp_path / name)]) == 1
    assert message in capsys.readouterr().err
