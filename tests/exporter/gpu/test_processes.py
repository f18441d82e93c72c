"""From a process id to the port its server listens on, through a /proc made for the purpose and the real one."""

import os
import socket
from pathlib import Path

import pytest

from exporter.gpu.processes import Processes

LISTEN, ESTABLISHED = "0A", "01"


class Proc:
    """A made /proc."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "net").mkdir(parents=True)
        self.sockets: list[str] = []
        self._tables()

    def process(self, pid: int, parent: int, *files: str, name: str = "vllm (x) y") -> None:
        folder = self.root / str(pid) / "fd"
        folder.mkdir(parents=True)
        for number, target in enumerate(files):
            (folder / str(number)).symlink_to(target)
        (self.root / str(pid) / "stat").write_text(f"{pid} ({name}) S {parent} 1 1 0\n")

    def listens(self, inode: int, port: int, state: str = LISTEN) -> None:
        self.sockets.append(f"  0: 00000000:{port:04X} 00000000:0000 {state} 0:0 0:0 0 0 0 {inode} 1 0 100\n")
        self._tables()

    def _tables(self) -> None:
        (self.root / "net" / "tcp").write_text("  sl  local_address ...\n" + "".join(self.sockets))


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path / "proc")


def test_an_ancestor_of_the_worker_listens(proc: Proc) -> None:
    proc.listens(77, 8000)
    proc.process(10, 1, "socket:[77]")
    proc.process(11, 10, "socket:[5]")
    proc.process(12, 11, "/dev/nvidia0", "/dev/nvidiactl")
    assert Processes(proc.root).ports(12) == (8000,)


def test_a_server_may_listen_on_several_ports(proc: Proc) -> None:
    proc.listens(77, 8000)
    proc.listens(78, 8081)
    proc.listens(79, 8082, ESTABLISHED)
    proc.process(10, 1, "/dev/nvidia0", "socket:[77]", "socket:[78]", "socket:[79]")
    assert Processes(proc.root).ports(10) == (8000, 8081)


def test_a_process_without_a_gpu_open_is_another_one_of_that_number(proc: Proc) -> None:
    proc.listens(77, 8000)
    proc.process(10, 1, "socket:[77]", "/dev/null")
    assert Processes(proc.root).ports(10) == ()


def test_a_process_that_is_gone_or_hidden_tells_nothing(proc: Proc) -> None:
    assert Processes(proc.root).ports(4242) == ()


def test_what_was_found_is_kept_for_a_while(proc: Proc) -> None:
    proc.listens(77, 8000)
    proc.process(10, 1, "/dev/nvidia0", "socket:[77]")
    processes = Processes(proc.root)
    assert processes.ports(10) == (8000,)
    proc.sockets.clear()
    proc.listens(77, 9000)
    assert processes.ports(10) == (8000,)


def test_the_real_proc_knows_who_listens_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exporter.gpu.processes._DEVICES", ("socket:",))  # no GPU needed
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert server.getsockname()[1] in Processes().ports(os.getpid())
