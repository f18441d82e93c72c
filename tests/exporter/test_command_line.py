"""The command line: check, scrape, usage; exit codes that a script can rely on."""

import subprocess
import sys
from pathlib import Path

import pytest

from exporter.__main__ import main
from running.ports import free_port
from tests.exporter.captured import capture
from tests.exporter.pages import served
from tests.exporter.serving import write_fleet


def test_check_says_that_a_good_fleet_can_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = write_fleet(tmp_path / "fleet.yml", a="http://h:1", b="http://h:2")
    assert main(["check", "--fleet", str(fleet)]) == 0
    assert capsys.readouterr().out == f"{fleet}: 2 replicas, good to use\n"


def test_check_says_that_a_fleet_watches_nothing_yet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = tmp_path / "fleet.yml"
    fleet.write_text("include: [tragets/*.yml]\n")
    assert main(["check", "--fleet", str(fleet)]) == 0
    assert capsys.readouterr().out == f"{fleet}: no replica yet (include matches no file), good to use\n"


def test_check_says_what_nobody_is_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = write_fleet(tmp_path / "fleet.yml", a="http://h:1")
    fleet.write_text(f"{fleet.read_text()}oncall: {{page: [{{webhook: {{url: 'http://h/page'}}}}]}}\n")
    assert main(["check", "--fleet", str(fleet)]) == 0
    told = capsys.readouterr()
    assert told.out == f"{fleet}: 1 replica, good to use\n"
    assert [line.partition("; add")[0] for line in told.err.splitlines()] == [
        f"{fleet}: oncall: no ticket: nobody is told of tickets, they only stand in Alertmanager",
        f"{fleet}: oncall: no heartbeat: nobody will notice when monitoring as a whole stops",
    ]


@pytest.mark.parametrize("command", [["check"], ["serve"], ["scrape", "a"]])
def test_a_bad_fleet_starts_nothing(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = write_fleet(tmp_path / "fleet.yml", a="vllm-a:8000")
    assert main([*command, "--fleet", str(fleet)]) == 1
    told = capsys.readouterr()
    assert told.err == "fleet.yml:2: replicas[0] (a).url: expected http(s)://host[:port], got 'vllm-a:8000'\n"
    assert told.out == ""


def test_scrape_prints_the_page_and_with_debug_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with served({"/metrics": capture("llama-server-b11434/idle")}) as address:
        fleet = write_fleet(tmp_path / "fleet.yml", a=f"http://{address}")
        assert main(["scrape", "a", "--fleet", str(fleet), "--debug"]) == 0
    told = capsys.readouterr()
    assert "llm_requests_running 0.0\n" in told.out
    assert "engine:  llama-server\n" in told.err
    assert "state:   ready\n" in told.err


def test_scrape_of_a_replica_that_is_not_well_exits_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = write_fleet(tmp_path / "fleet.yml", a=f"http://127.0.0.1:{free_port()}")
    assert main(["scrape", "a", "--fleet", str(fleet), "--debug"]) == 1
    told = capsys.readouterr()
    assert "llm_replica_up 0.0\n" in told.out
    assert "Connection refused" in told.err


def test_scrape_of_an_unknown_name_lists_the_known_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = write_fleet(tmp_path / "fleet.yml", a="http://h:1", b="http://h:2")
    assert main(["scrape", "c", "--fleet", str(fleet)]) == 1
    assert capsys.readouterr().err == "no replica is named 'c'; there are: a, b\n"


def test_scrape_of_an_unknown_name_lists_no_whole_fleet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = write_fleet(tmp_path / "fleet.yml", **{f"r{at}": f"http://h:{at + 1}" for at in range(300)})
    assert main(["scrape", "c", "--fleet", str(fleet)]) == 1
    assert capsys.readouterr().err.endswith(", r19 and 280 more\n")


def test_scrape_where_nothing_is_watched_yet_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = tmp_path / "fleet.yml"
    fleet.write_text("include: [targets/*.yml]\n")
    assert main(["scrape", "a", "--fleet", str(fleet)]) == 1
    assert capsys.readouterr().err == "no replica is named 'a'; there are: none\n"


@pytest.mark.parametrize(
    "arguments", [[], ["serve", "--listen", "9801"], ["serve", "--min-interval", "fast"], ["scrape"]]
)
def test_wrong_usage_exits_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_help_is_one_screen() -> None:
    done = subprocess.run([sys.executable, "-m", "exporter", "--help"], capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) < 24
    for command in ("serve", "check", "scrape", "drain", "undrain", "Exit code"):
        assert command in done.stdout


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with served({}) as address:
        fleet = write_fleet(tmp_path / "fleet.yml", a="http://h:1")
        command = [sys.executable, "-m", "exporter", "serve", "--fleet", str(fleet), "--listen", address]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 1
    sentence = f"cannot serve on {address}: Address already in use; stop what holds it, or give another --listen"
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
