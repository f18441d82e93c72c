"""A process is ready or says why not, and nothing of it is left after it was stopped."""

import signal
import sys
from pathlib import Path

import pytest

from running.errors import NotReadyError, ProcessDiedError
from running.loopback import answers
from running.ports import is_free
from running.processes import Process

FORKING = """
import os, signal, time
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid(), flush=True)
time.sleep(600)
"""


def _python(code: str, tmp_path: Path) -> Process:
    return Process.start("part", [sys.executable, "-c", code], log=tmp_path / "logs/part.log")


def _is_alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_server_is_ready_once_it_answers(tmp_path: Path, free_port: int) -> None:
    command = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(free_port)]
    url = f"http://127.0.0.1:{free_port}/"
    with Process.start("web", command, log=tmp_path / "log") as process:
        process.wait_ready(url)
        assert answers(url)
        assert not answers(f"{url}no-such-page")
    assert not answers(url)
    assert is_free(free_port)


def test_a_process_that_ends_early_shows_its_last_lines(tmp_path: Path, free_port: int) -> None:
    with (
        _python("print('bad flag'); raise SystemExit(3)", tmp_path) as process,
        pytest.raises(ProcessDiedError, match=r"part ended with status 3; its last lines:\nbad flag"),
    ):
        process.wait_ready(f"http://127.0.0.1:{free_port}/")


def test_a_process_that_never_answers_is_not_ready(tmp_path: Path, free_port: int) -> None:
    url = f"http://127.0.0.1:{free_port}/"
    with (
        _python("import time; print('waiting', flush=True); time.sleep(600)", tmp_path) as process,
        pytest.raises(NotReadyError, match=rf"part did not answer 200 on {url} within 0.3 s"),
    ):
        process.wait_ready(url, seconds=0.3)


def test_a_child_that_ignores_sigterm_goes_with_its_parent(tmp_path: Path) -> None:
    process = _python(FORKING, tmp_path)
    process.wait_until(lambda: len(process.log_tail().split()) == 2, "fork")
    both = [int(pid) for pid in process.log_tail().split()]
    assert process.pid in both
    process.stop(grace_seconds=1)
    assert not any(_is_alive(pid) for pid in both)


def test_a_frozen_process_can_be_stopped(tmp_path: Path) -> None:
    process = _python("import time; time.sleep(600)", tmp_path)
    process.signal(signal.SIGSTOP)
    process.stop()
    assert process.returncode == -signal.SIGTERM
