"""A fleet that changes while it is watched: every way to change files, files that cannot be used, probes that run."""

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests

from exporter import upkeep
from exporter.changes import FleetFiles
from exporter.fleet import load
from exporter.service import Options, Service
from running.processes import Process
from tests.exporter.serving import exporter, write_fleet

A = 'replicas: [{name: a, url: "http://127.0.0.1:1"}]\n'
A_AND_B = 'replicas: [{name: a, url: "http://127.0.0.1:1"}, {name: b, url: "http://127.0.0.1:2"}]\n'
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
ONLY_B = 'replicas: [{name: b, url: "http://127.0.0.1:2"}]\n'
SOON = 30  # seconds


def names(address: str) -> list[str]:
    return [target["labels"]["replica"] for target in requests.get(f"{address}/targets", timeout=30).json()]


def own_metrics(address: str) -> str:
    return requests.get(f"{address}/metrics", timeout=30).text


def write_in_place(fleet: Path) -> None:
    fleet.write_text(A_AND_B)


def save_as_editors_do(fleet: Path) -> None:
    draft = fleet.with_name(".fleet.yml.swp")
    draft.write_text(A_AND_B)
    draft.replace(fleet)


def swap_a_link_as_kubernetes_does(fleet: Path) -> None:
    new = fleet.with_name("..2026")
    new.mkdir()
    (new / "fleet.yml").write_text(A_AND_B)
    link = fleet.with_name("link")
    link.symlink_to(new / "fleet.yml")
    link.replace(fleet)


def keep_size_and_time(fleet: Path) -> None:
    before = fleet.stat()
    fleet.write_text(A.replace("name: a", "name: c"))
    os.utime(fleet, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[tuple[str, Process, Path]]:
    fleet = tmp_path / "fleet.yml"
    fleet.write_text(A)
    with exporter(fleet, tmp_path / "log") as (address, process):
        yield address, process, fleet


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (write_in_place, ["a", "b"]),
        (save_as_editors_do, ["a", "b"]),
        (swap_a_link_as_kubernetes_does, ["a", "b"]),
        (keep_size_and_time, ["c"]),
    ],
)
def test_a_change_of_the_fleet_file_is_seen_without_a_request(
    serving: tuple[str, Process, Path], change: Callable[[Path], None], expected: list[str]
) -> None:
    address, process, fleet = serving
    change(fleet)
    process.wait_until(lambda: names(address) == expected, "take the new fleet", seconds=SOON)


def test_included_files_are_followed_as_they_come_change_and_go(tmp_path: Path) -> None:
    fleet, more = tmp_path / "fleet.yml", tmp_path / "targets" / "more.yml"
    fleet.write_text(f"{A}include: [targets/*.yml]\n")
    with exporter(fleet, tmp_path / "log") as (address, process):
        more.parent.mkdir()
        more.write_text(ONLY_B)
        process.wait_until(lambda: names(address) == ["a", "b"], "find a new file", seconds=SOON)
        more.write_text(ONLY_B.replace("b,", "c,"))
        process.wait_until(lambda: names(address) == ["a", "c"], "see a change", seconds=SOON)
        more.unlink()
        process.wait_until(lambda: names(address) == ["a"], "miss a file", seconds=SOON)


def test_what_rules_still_go_by_after_a_change_is_told(serving: tuple[str, Process, Path], tmp_path: Path) -> None:
    address, process, fleet = serving
    fleet.write_text(A_AND_B)
    process.wait_until(lambda: names(address) == ["a", "b"], "take the new fleet", seconds=SOON)
    assert "go by what was there before" not in (tmp_path / "log").read_text()
    fleet.write_text(f"{A}slos: {{default: {{ttft: {{threshold: 1s}}}}}}\n")
    process.wait_until(lambda: names(address) == ["a"], "take the new objectives", seconds=SOON)
    assert "slos changed: rules and notifications go by what was there before" in (tmp_path / "log").read_text()


def test_a_bad_file_keeps_the_old_fleet_says_so_once_and_a_good_one_mends_it(
    serving: tuple[str, Process, Path], tmp_path: Path
) -> None:
    address, process, fleet = serving
    fleet.write_text("replicas: [{name: a, url: nonsense}]\n")
    process.wait_until(lambda: "reload_success 0.0" in own_metrics(address), "refuse the bad file", seconds=SOON)
    for _ in range(3):
        requests.post(f"{address}/-/reload", timeout=30)
    assert names(address) == ["a"]
    assert "got &#39;nonsense&#39;" in requests.get(address, timeout=30).text
    assert (tmp_path / "log").read_text().count("fleet not reloaded") == 1
    fleet.write_text(A_AND_B)
    process.wait_until(lambda: "reload_success 1.0" in own_metrics(address), "take the good file", seconds=SOON)
    assert names(address) == ["a", "b"]


def test_a_fleet_file_that_vanishes_is_a_bad_file(serving: tuple[str, Process, Path]) -> None:
    address, process, fleet = serving
    fleet.unlink()
    process.wait_until(lambda: "reload_success 0.0" in own_metrics(address), "miss the file", seconds=SOON)
    assert names(address) == ["a"]


def test_a_file_that_is_still_being_written_is_not_taken(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.yml"
    fleet.write_text(A_AND_B)
    files = FleetFiles(fleet)
    assert not files.have_settled_anew()
    fleet.write_text(A_AND_B[:20])
    assert not files.have_settled_anew()
    fleet.write_text(A)
    assert not files.have_settled_anew()
    assert files.have_settled_anew()
    files.take()
    assert not files.have_settled_anew()


def test_a_change_that_is_taken_back_is_none(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.yml"
    fleet.write_text(A)
    files = FleetFiles(fleet)
    fleet.write_text(A_AND_B)
    files.have_settled_anew()
    fleet.write_text(A)
    assert not files.have_settled_anew()
    assert not files.have_settled_anew()


def test_a_secret_that_comes_later_mends_a_fleet_whose_files_did_not_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "_RETRY", 0.0)
    fleet, key = tmp_path / "fleet.yml", tmp_path / "key"
    fleet.write_text(A)

    async def scenario() -> None:
        service = Service(Options(fleet=fleet), load(fleet))
        fleet.write_text('replicas: [{name: b, url: "http://127.0.0.1:2", api_key_file: key}]\n')
        await service.reload_or_keep()
        assert (list(service.watches), "an existing file" in service.refused) == (["a"], True)
        key.write_text("sk-1")
        tending = upkeep.Upkeep(service)
        async with asyncio.timeout(SOON):
            while list(service.watches) != ["b"]:  # noqa: ASYNC110 - what is awaited has no event
                await asyncio.sleep(0.01)
        await tending.close()
        await service.close()

    asyncio.run(scenario())


def test_a_probe_that_runs_ends_well_although_its_replica_left_the_fleet(tmp_path: Path) -> None:
    pages: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        fleet = write_fleet(tmp_path / "fleet.yml", a=f"http://127.0.0.1:{silent.getsockname()[1]}")
        with exporter(fleet, tmp_path / "log") as (address, _):
            probe = f"{address}/probe?target=a"
            reader = threading.Thread(target=lambda: pages.append(requests.get(probe, timeout=30).text))
            reader.start()
            connection, _ = silent.accept()
            assert connection.recv(4096).startswith(b"GET /props"), "a stranger may sleep"
            connection.sendall(BUSY)
            connection.close()
            connection, _ = silent.accept()
            fleet.write_text(ONLY_B)
            assert requests.post(f"{address}/-/reload", timeout=30).status_code == 200
            assert names(address) == ["b"]
            connection.recv(4096)
            connection.sendall(BUSY)
            connection.close()
            reader.join(30)
    assert 'reason="status"} 1.0' in pages[0]
