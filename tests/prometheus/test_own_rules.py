"""Own rules: every Prometheus loads them from beside fleet.yml, and a wrong one is refused with a sentence before."""

import subprocess
from pathlib import Path

import pytest
import yaml

import generate
from prometheus.lint import lint
from running import tools
from tests.prometheus.lint.mistakes import alert
from tests.prometheus.lint.test_checks import known

ROOT = Path(generate.__file__).parent
README = ROOT / "rules.d" / "README.md"


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Put the committed fleet into a folder of its own."""
    file = tmp_path / "fleet.yml"
    file.write_text((ROOT / "fleet.yml").read_text(encoding="utf-8"), encoding="utf-8")
    return file


def add(fleet: Path, text: str) -> None:
    folder = fleet.parent / "rules.d"
    folder.mkdir()
    (folder / "own.yml").write_text(text, encoding="utf-8")


def run(fleet: Path) -> int:
    return generate.main(["--fleet", str(fleet), "--out", str(fleet.parent / "out"), "--local"])


def _rule_files(fleet: Path, promtool: tools.Tool) -> list[str]:
    config = fleet.parent / "out/prometheus/generated/prometheus.yml"
    check = subprocess.run([promtool.path, "check", "config", config], capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stdout + check.stderr
    return [line.split()[1] for line in check.stdout.splitlines() if line.startswith("Checking") and "/rules" in line]


def test_every_prometheus_loads_the_rules_beside_the_fleet(fleet: Path) -> None:
    add(fleet, alert())
    assert run(fleet) == 0
    promtools = tools.all_versions("promtool")
    assert promtools, tools.missing("promtool")
    for promtool in promtools:
        assert str(fleet.parent / "rules.d/own.yml") in _rule_files(fleet, promtool), str(promtool)


def test_a_fleet_without_own_rules_needs_no_folder(fleet: Path) -> None:
    assert run(fleet) == 0
    for promtool in tools.all_versions("promtool"):
        assert not any("rules.d" in file for file in _rule_files(fleet, promtool))


def test_an_error_is_refused_with_its_place_and_fix(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(fleet, alert(("llm_requests_running", "llm_request_running")))
    assert run(fleet) == 1
    assert not (fleet.parent / "out").exists()
    first, last = capsys.readouterr().err.splitlines()
    expected = "rules.d/own.yml:5:41: no page and no rule gives llm_request_running; did you mean llm_requests_running?"
    assert first == f"{expected} (unknown-metric)"
    assert last == "rules.d: 1 of your own rules' problems are errors; mend them"


def test_a_warning_is_shown_and_stops_nothing(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(fleet, alert(("runbook_url", "more")))
    assert run(fleet) == 0
    assert capsys.readouterr().err == (
        "rules.d/own.yml:4:5: warning: ModelIdle has no runbook; annotations: runbook_url: where to read what to do"
        " (runbook)\n"
    )


def test_a_file_that_is_no_text_is_refused(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(fleet, "")
    (fleet.parent / "rules.d/own.yml").write_bytes(b"\xff\xfe")
    assert run(fleet) == 1
    assert capsys.readouterr().err.startswith("rules.d/own.yml: cannot be read: ")


def test_the_example_in_the_handbook_is_right() -> None:
    text = README.read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0]
    assert yaml.safe_load(text)["groups"][0]["rules"][0]["alert"] == "ModelIdle"
    assert lint({"own.yml": text}, known()) == ()


def test_an_own_rule_may_use_what_another_one_records() -> None:
    rules = [
        {"record": "own:waiting:twice", "expr": "own:waiting:sum * 2"},
        {"record": "own:waiting:sum", "expr": "sum by (model) (llm_requests_waiting)"},
        {"record": "own:waiting:replicas", "expr": "sum by (replica) (own:waiting:sum)"},
    ]
    [problem] = lint({"own.yml": yaml.safe_dump({"groups": [{"name": "own", "rules": rules}]})}, known())
    assert (problem.rule, problem.position.line) == ("unknown-label", 8)


def test_a_name_that_is_recorded_already_is_refused() -> None:
    rule = {"record": "model:llm_ttft_good:rate5m", "expr": "sum by (model) (llm_requests_waiting)"}
    [problem] = lint({"own.yml": yaml.safe_dump({"groups": [{"name": "own", "rules": [rule]}]})}, known())
    assert problem.message == "model:llm_ttft_good:rate5m is Servewatch's own: two rules would write one series"


def test_an_alert_of_a_name_that_is_loaded_already_is_refused() -> None:
    text = alert(("ModelIdle", "LLMModelDown"))
    [problem] = lint({"own.yml": text}, known())
    assert problem.message == "LLMModelDown is Servewatch's own: the end of one would resolve the other"


PER_RANK = """groups:
- name: own
  rules:
  - record: own:waiting:max
    expr: sum(llm_requests_waiting)
  # {comment}
  - record: own:running:all
    expr: llm_requests_running
"""


def test_a_comment_above_a_rule_switches_a_check_off_for_that_rule() -> None:
    text = PER_RANK.replace("{comment}", "lint ignore: per-rank each rank has its own queue")
    assert [problem.rule for problem in lint({"own.yml": PER_RANK}, known())] == ["per-rank"]
    assert lint({"own.yml": text}, known()) == ()
    elsewhere = text.replace("sum(llm_requests_waiting)", "llm_requests_waiting")
    assert [problem.position.line for problem in lint({"own.yml": elsewhere}, known())] == [5]


@pytest.mark.parametrize(
    "rule",
    [
        "- record: own:x:y\n    expr: llm_requests_running  # lint ignore: per-rank why",
        "- record: own:x:y\n    # lint ignore: per-rank why\n    expr: llm_requests_running",
        "# lint ignore: per-rank why\n  # and more\n\n  - record: own:x:y\n    expr: |\n      llm_requests_running\n",
        "# lint ignore: per-rank why\n  - {record: own:x:y, expr: llm_requests_running}",
    ],
    ids=["behind", "within", "above a block", "above a line"],
)
def test_the_comment_may_stand_anywhere_about_its_rule(rule: str) -> None:
    text = f"groups:\n- name: own\n  rules:\n  {rule}\n  - record: own:x:z\n    expr: llm_requests_waiting\n"
    [problem] = lint({"own.yml": text}, known())
    assert "own:x:z" in text.splitlines()[problem.position.line - 2]


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("lint ignore: per-rank", "a check is ignored without a reason"),
        ("lint ignore:", "a check is ignored without a reason"),
        ("lint ignore: per-rnak because", "no check is named per-rnak"),
    ],
)
def test_ignoring_takes_the_name_of_a_check_and_a_reason(comment: str, message: str) -> None:
    problems = lint({"own.yml": PER_RANK.replace("{comment}", comment)}, known())
    assert message in {problem.message for problem in problems}
