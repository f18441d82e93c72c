"""Everything ends together, whoever asks, and nothing is left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from running.paths import ROOT

SLEEP = "exec sleep 600"
DEAF = "trap '' TERM INT; echo deaf; while :; do sleep 1; done"
# A daemon: in a session of its own, deaf to SIGTERM, away from every pipe.
DAEMON = "(trap '' TERM; exec setsid sleep 600 </dev/null >/dev/null 2>&1) & exec sleep 600"
SCRIPT = """
import json, sys
from pathlib import Path
from running import supervise
from running.errors import RunningError
supervise.GRACE_SECONDS = 1
try:
    supervise.foreground(json.loads(sys.argv[1]), {}, run=Path(sys.argv[2]))
except RunningError as error:
    sys.exit(str(error))
"""
Start = Callable[[dict[str, str]], "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Answer a function that supervises commands in a process of its own."""
    started: list[subprocess.Popen[str]] = []

    def supervise(commands: dict[str, str]) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", SCRIPT, json.dumps(commands), str(tmp_path)]
        process = subprocess.Popen(
            command, cwd=ROOT, text=True, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        started.append(process)
        return process

    yield supervise
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _of_run(run: Path) -> dict[int, str]:
    """Answer the commands of all processes of the run by their process id."""
    entry = f"SERVEWATCH_RUN={run}".encode()
    found = {}
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if entry in (directory / "environ").read_bytes().split(b"\0"):
                command = (directory / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(directory.name)] = command.decode()
        except OSError:
            continue
    return found


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "waited 20 s in vain"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    ("commands", "processes"),
    [
        pytest.param({"one": SLEEP, "two": SLEEP}, 2, id="obedient"),
        pytest.param({"one": DEAF, "two": DEAF}, 4, id="all deaf to SIGTERM"),
        pytest.param({"one": SLEEP, "two": DAEMON}, 3, id="one started a daemon"),
    ],
)
def test_a_stop_leaves_nothing_behind(
    start: Start, tmp_path: Path, commands: dict[str, str], processes: int, number: signal.Signals
) -> None:
    supervisor = start(commands)
    _wait(lambda: len(_of_run(tmp_path)) >= processes)
    supervisor.send_signal(number)
    assert supervisor.wait(20) == 0
    assert _of_run(tmp_path) == {}


def test_a_stop_in_the_first_moment_leaves_nothing_behind(start: Start, tmp_path: Path) -> None:
    supervisor = start({f"process-{number}": SLEEP for number in range(11)})
    _wait(lambda: bool(_of_run(tmp_path)))
    supervisor.send_signal(signal.SIGINT)
    assert supervisor.wait(20) == 0
    assert _of_run(tmp_path) == {}


def test_a_process_that_ends_by_itself_is_named_with_its_last_lines_and_stops_the_rest(
    start: Start, tmp_path: Path
) -> None:
    supervisor = start({"exporter": "echo starting; echo port is taken; exit 3", "load": SLEEP})
    output, error = supervisor.communicate(timeout=20)
    assert supervisor.returncode == 1
    assert "exporter" in output
    assert error == (
        "exporter ended with status 3, so everything else was stopped; "
        f"its last lines ({tmp_path}/logs/exporter.log):\n  starting\n  port is taken\n"
    )
    assert _of_run(tmp_path) == {}


def test_a_process_that_was_killed_is_said_to_have_been(start: Start, tmp_path: Path) -> None:
    supervisor = start({"prometheus": "exec sleep 611", "load": SLEEP})
    _wait(lambda: "sleep 611 " in _of_run(tmp_path).values())
    os.kill(next(pid for pid, command in _of_run(tmp_path).items() if command == "sleep 611 "), signal.SIGKILL)
    _, error = supervisor.communicate(timeout=20)
    assert error.startswith("prometheus was ended by SIGKILL, so everything else was stopped")
