"""generate.py: what is committed is what it generates, and it names every file that is not."""

import subprocess
import sys
from pathlib import Path

import pytest

import generate
from exporter.fleet import load
from prometheus.deployment import Deployment
from prometheus.render import HEADER

ROOT = Path(generate.__file__).parent


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Generate a tree of the committed fleet."""
    assert generate.main(["--out", str(tmp_path)]) == 0
    return tmp_path


def _check(tree: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    capsys.readouterr()
    status = generate.main(["--out", str(tree), "--check"])
    return status, capsys.readouterr().out.splitlines()


def test_the_committed_files_are_what_is_generated() -> None:
    files = generate.artefacts(load(ROOT / "fleet.yml"), Deployment())
    assert generate.problems(files, ROOT) == []


def test_the_same_fleet_gives_the_same_bytes_in_another_process() -> None:
    script = (
        "import generate, hashlib; from pathlib import Path; from prometheus.deployment import Deployment;"
        "files = generate.artefacts(generate.load(Path('fleet.yml')), Deployment());"
        "print(hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_every_generated_file_says_so_in_its_first_line(tree: Path) -> None:
    for file in tree.glob("*/generated/**/*.*"):
        if file.suffix != ".json":  # which has no comments
            assert HEADER in file.read_text(encoding="utf-8").splitlines()[0]


def test_a_fresh_tree_passes_the_check(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, [line] = _check(tree, capsys)
    assert status == 0
    assert line.endswith("generated files are fresh")


def test_the_check_names_missing_stale_and_left_over_files(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "prometheus/generated/prometheus.yml").unlink()
    (tree / "alerts/generated/rules/budget.yml").write_text("groups: []\n", encoding="utf-8")
    (tree / "alerts/generated/rules/old.yml").write_text("groups: []\n", encoding="utf-8")
    (tree / "dashboards/generated/.hidden").write_text("", encoding="utf-8")
    status, lines = _check(tree, capsys)
    assert status == 1
    assert [line.partition(",")[0].partition(";")[0] for line in lines] == [
        "alerts/generated/rules/budget.yml: stale",
        "prometheus/generated/prometheus.yml: missing",
        "alerts/generated/rules/old.yml: left over",
        "dashboards/generated/.hidden: left over",
    ]
    assert all(line.endswith("run `make generate`") for line in lines)


def test_the_check_writes_nothing(tmp_path: Path) -> None:
    assert generate.main(["--out", str(tmp_path), "--check"]) == 1
    assert list(tmp_path.iterdir()) == []


def test_generating_removes_what_is_left_over_and_nothing_else(tree: Path) -> None:
    left_over = tree / "alerts/generated/rules/old.yml"
    others = [tree / "alerts/model.py", tree / "notes/generated/mine.yml", tree / "mine.yml"]
    for file in (left_over, *others):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("mine", encoding="utf-8")
    assert generate.main(["--out", str(tree)]) == 0
    assert not left_over.exists()
    assert all(file.exists() for file in others)


def test_a_fresh_file_is_not_written_again(tree: Path) -> None:
    file = tree / "prometheus/generated/prometheus.yml"
    before = file.stat().st_mtime_ns
    generate.main(["--out", str(tree)])
    assert file.stat().st_mtime_ns == before


def test_a_bad_fleet_generates_nothing_and_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = tmp_path / "fleet.yml"
    fleet.write_text("replicas: [{name: a, url: 'vllm-a:8000'}]", encoding="utf-8")
    assert generate.main(["--fleet", str(fleet), "--out", str(tmp_path / "out")]) == 1
    assert "fleet.yml:1: replicas[0] (a).url: expected http(s)://host[:port]" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_nobody_is_told_of_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hook = "[{webhook: {url: 'http://h/hook'}}]"
    fleet = tmp_path / "fleet.yml"
    fleet.write_text(f"replicas: [{{name: a, url: 'http://h:1'}}]\noncall: {{page: {hook}, ticket: {hook}}}\n")
    assert generate.main(["--fleet", str(fleet), "--out", str(tmp_path / "out")]) == 0
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{fleet}: oncall: no heartbeat: nobody will notice when monitoring as a whole stops; add ")


@pytest.mark.parametrize("scale", ["0", "-1", "1.5", "fast", "", "61"])
def test_a_time_scale_is_a_whole_number_that_drills_can_run_at(scale: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        generate.main([f"--time-scale={scale}"])
    assert f"expected a whole number, 1 to 60, got {scale!r}" in capsys.readouterr().err


def test_help_says_what_every_option_does(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        generate.main(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    for words in ("--fleet FILE", "--out DIR", "127.0.0.1 instead of container names", "divide every window", "exit 1"):
        assert words in text


def test_local_files_name_no_container(tmp_path: Path) -> None:
    assert generate.main(["--local", "--out", str(tmp_path)]) == 0
    for file in ("prometheus/generated/prometheus.yml", "alerts/generated/alertmanager.yml"):
        text = (tmp_path / file).read_text(encoding="utf-8")
        assert "127.0.0.1:" in text
        assert "exporter:9801" not in text
        assert "phone:9803" not in text
