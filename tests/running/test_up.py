"""`make up` as a person runs it, with every part real, in a network of its own."""

import fcntl
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from running import lock
from running.errors import RunningError
from running.paths import ROOT
from running.processes import Process
from tests.running.network import Network, network

PORTS = (9090, 9093, 9801, 9803, 9810, 9811, 9812, 9813, 9814, 9815)
UP_WITHIN_SECONDS = 60
FREE = f"from running.ports import is_free; print([port for port in {PORTS} if not is_free(port)])"


@pytest.fixture
def own_network(tmp_path: Path) -> Iterator[Network]:
    with network(tmp_path / "network.log") as made:
        yield made


def _up(own_network: Network, tmp_path: Path) -> Process:
    command = own_network.command(sys.executable, "-m", "running", "up", "--run", tmp_path / "run")
    return Process.start("up", command, log=tmp_path / "up.log")


def _processes_of(run: Path) -> list[str]:
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if str(run).encode() in (directory / "environ").read_bytes() + (directory / "cmdline").read_bytes():
                found.append((directory / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def test_the_demo_fleet_is_up_within_a_minute_and_ctrl_c_leaves_nothing_behind(
    own_network: Network, tmp_path: Path
) -> None:
    with _up(own_network, tmp_path) as up:
        up.wait_until(
            lambda: "5 of 5 replicas are up" in up.log_tail(100), "show 5 replicas", seconds=UP_WITHIN_SECONDS
        )
        for address in ("9803", "9801", "9090", "9093", "9810"):
            assert f"http://127.0.0.1:{address} " in up.log_tail(100)
        query = "http://127.0.0.1:9090/api/v1/query?query=count(llm_replica_up%20==%201)"
        assert '"5"]' in own_network.ask(query)
        assert "Watchdog" in own_network.ask("http://127.0.0.1:9090/api/v1/rules?type=alert")
        up.signal(signal.SIGINT)
        assert up.wait(seconds=15) == 0
    assert _processes_of(tmp_path / "run") == []
    assert own_network.python("-c", FREE) == "[]"


def test_make_down_stops_it_from_elsewhere_and_a_second_up_is_refused(own_network: Network, tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    with _up(own_network, tmp_path) as up:
        up.wait_until(lambda: "Servewatch is up" in up.log_tail(100), "be up", seconds=UP_WITHIN_SECONDS)
        second = Process.start("second", [sys.executable, "-m", "running", "up", "--run", run], log=tmp_path / "second")
        with second:
            assert second.wait() == 1
            assert "it is up already (pid " in second.log_tail()
        assert own_network.python("-m", "running", "down", "--run", run).startswith("stopped (pid ")
        assert up.wait() == 0
    assert _processes_of(tmp_path / "run") == []
    assert own_network.python("-m", "running", "down", "--run", run) == "nothing is up"


def test_a_killed_launcher_is_cleaned_up_after(own_network: Network, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with _up(own_network, tmp_path) as up:
        up.wait_until(lambda: "Servewatch is up" in up.log_tail(100), "be up", seconds=UP_WITHIN_SECONDS)
        up.signal(signal.SIGKILL)
        assert up.wait() == -signal.SIGKILL
        own_network.python("-m", "running", "down", "--run", run)
        assert own_network.python("-c", FREE) == "[]"


def test_a_taken_port_is_named_before_anything_starts(own_network: Network, tmp_path: Path) -> None:
    squatter = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "9090"]
    with Process.start("squatter", own_network.command(*squatter), log=tmp_path / "squatter.log") as process:
        process.wait_until(lambda: own_network.python("-c", FREE) == "[9090]", "listen on 9090")
        with _up(own_network, tmp_path) as up:
            assert up.wait() == 1
            assert f"port 9090 (Prometheus) is taken by pid {process.pid}: {sys.executable}" in up.log_tail()
    assert not (tmp_path / "run/logs").exists()


def test_a_directory_that_cannot_be_written_is_named_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "full").symlink_to("/dev/full")
    run = tmp_path / "full" / "run"
    answer = subprocess.run(
        [sys.executable, "-m", "running", "up", "--run", run], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 1
    assert f"data and logs are written to {run.resolve()}; make room there" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_fleet_file_may_have_blanks_in_its_name() -> None:
    asked = subprocess.run(
        ["make", "up", "FLEET=/no such/fleet.yml"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "/no such/fleet.yml: cannot be read" in asked.stderr


def test_nobody_is_stopped_while_the_holder_of_the_lock_has_not_said_who_it_is(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(RunningError, match="has not said who it is"):
            lock.holder(tmp_path / "lock")
        file.write("4711\n")
        file.flush()
        assert lock.holder(tmp_path / "lock") == 4711
