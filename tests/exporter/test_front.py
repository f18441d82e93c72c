"""Strangers at the exporter's own socket: what they send costs nobody else, and leaving early is no crash."""

import asyncio
import gc
import logging
import re
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import requests
import uvicorn
import uvloop
from fastapi import FastAPI

from exporter import front
from exporter.fleet import Fleet, Replica
from exporter.server import app
from exporter.service import Options
from running.ports import free_port
from running.processes import Process
from tests.exporter.captured import capture
from tests.exporter.pages import served
from tests.exporter.serving import exporter, write_fleet

START = b"GET /metrics HTTP/1.1\r\nHost: h\r\n"
MEBIBYTE = 2**20


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Process, Path]]:
    folder = tmp_path_factory.mktemp("front")
    with served({"/metrics": capture("vllm-0.32.0/under-load")}) as engine:
        fleet = write_fleet(folder / "fleet.yml", a=f"http://{engine}", gone=f"http://127.0.0.1:{free_port()}")
        with exporter(fleet, folder / "log") as (address, process):
            yield address, process, folder / "log"


@asynccontextmanager
async def listening(application: FastAPI) -> AsyncIterator[int]:
    """Serve an application in this process; yield the port."""
    server = uvicorn.Server(uvicorn.Config(application, http=front.Front, log_config=None, port=free_port()))
    task = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    yield server.config.port
    server.should_exit = True
    await task


def connect(address: str) -> socket.socket:
    host, _, port = address.removeprefix("http://").rpartition(":")
    return socket.create_connection((host, int(port)), timeout=30)


def open_files(process: Process) -> int:
    return len(list(Path(f"/proc/{process.pid}/fd").iterdir()))


def resident(process: Process) -> int:
    return int(re.findall(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())[0]) * 1024


@pytest.mark.parametrize(
    ("start", "more"),
    [(START + b"X: ", b"a" * 65536), (START, b"X: a\r\n" * 10_000), (b"GET /", b"a" * 65536)],
    ids=["a header without end", "headers without end", "an address without end"],
)
def test_a_head_without_end_is_refused_and_takes_no_memory(
    serving: tuple[str, Process, Path], start: bytes, more: bytes
) -> None:
    address, process, _ = serving
    before = resident(process)
    with connect(address) as stranger, pytest.raises(ConnectionError):  # noqa: PT012 - it may take some of it
        stranger.sendall(start)
        for _ in range(1000):
            stranger.sendall(more)
    assert resident(process) - before < 20 * MEBIBYTE
    assert requests.get(f"{address}/-/healthy", timeout=30).status_code == 200


def test_a_head_of_many_pieces_and_requests_in_a_row_are_served(serving: tuple[str, Process, Path]) -> None:
    with connect(serving[0]) as reader:
        for _ in range(20):
            for piece in (START[:9], START[9:], b"X: " + b"a" * 30_000, b"\r\n\r\n"):
                reader.sendall(piece)
            answer = reader.recv(4096)
            assert answer.startswith(b"HTTP/1.1 200 OK")
            length = int(re.findall(rb"content-length: (\d+)", answer)[0])
            left = length - len(answer.partition(b"\r\n\r\n")[2])
            while left:
                left -= len(reader.recv(left))


@pytest.mark.parametrize("said", [b"", START, START + b"X: a"])
def test_who_does_not_ask_in_time_is_hung_up_on(said: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(front, "_HEAD_SECONDS", 0.2)

    async def hangs_up() -> bytes:
        service = app(Options(fleet=write_fleet(tmp_path / "fleet.yml", a="http://127.0.0.1:1")), Fleet(replicas=()))
        async with listening(service) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(said)
            left = await asyncio.wait_for(reader.read(), 30)
            writer.close()
            return left

    assert asyncio.run(hangs_up()) == b""


def test_readers_who_leave_at_once_are_no_crash(serving: tuple[str, Process, Path]) -> None:
    address, process, log = serving
    reset = struct.pack("ii", 1, 0)
    before = open_files(process)
    for path in (b"/metrics", b"/probe?target=a", b"/probe?target=gone", b"/") * 25:
        with connect(address) as reader:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            reader.sendall(b"GET %s HTTP/1.1\r\nHost: h\r\n\r\n" % path * 20)
    process.wait_until(lambda: open_files(process) <= before + 5, "close", seconds=30)
    assert requests.get(f"{address}/-/healthy", timeout=30).status_code == 200
    assert "Traceback" not in log.read_text()


def test_who_leaves_with_requests_in_a_row_is_no_crash_either(tmp_path: Path) -> None:
    async def scenario() -> list[dict[str, object]]:
        crashes: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: crashes.append(context))
        with socket.create_server(("127.0.0.1", 0)) as silent:
            fleet = Fleet(replicas=(Replica(name="r", url=f"http://127.0.0.1:{silent.getsockname()[1]}"),))
            application = app(Options(fleet=write_fleet(tmp_path / "fleet.yml")), fleet)
            async with listening(application) as port:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(request(b"/probe?target=r", b"X-Prometheus-Scrape-Timeout-Seconds: 0.5") * 3)
                watch = application.state.service.watches["r"]
                while watch._task is None:  # noqa: ASYNC110 - nobody is told
                    await asyncio.sleep(0.01)
                writer.close()
                await watch._task
                await asyncio.sleep(0.1)
        gc.collect()  # a task's exception is told when it goes
        return crashes

    assert uvloop.run(scenario()) == []


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"\x16\x03\x01\x02\x00", b"HTTP/1.1 400 "),
        (b"GET / HTTP/1.1\nX\n", b"HTTP/1.1 400 "),
        (b"GET /-/healthy HTTP/1.1\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n", b"HTTP/1.1 200 "),
    ],
)
def test_what_is_no_request_fills_no_log(serving: tuple[str, Process, Path], sent: bytes, answer: bytes) -> None:
    address, _, log = serving
    before = log.read_text()
    with connect(address) as stranger:
        stranger.sendall(sent)
        assert stranger.recv(100).startswith(answer)
    assert log.read_text() == before


@pytest.mark.parametrize("text", ["unable to perform operation on <X>; the handler is closed", "something else"])
def test_only_what_a_leaving_reader_causes_is_kept_from_the_log(text: str) -> None:
    crash = (RuntimeError, RuntimeError(text), None)
    record = logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, "crash", (), crash)
    assert front.is_news(record) is (text == "something else")


def conversation(address: str, *requests_: bytes) -> list[bytes]:
    """Send requests at once on one connection, the last of which ends it; answer status lines and bodies."""
    with connect(address) as reader:
        reader.sendall(b"".join(requests_))
        received = b"".join(iter(lambda: reader.recv(2**16), b""))
    answers = []
    while received:
        head, _, rest = received.partition(b"\r\n\r\n")
        length = int(re.findall(rb"content-length: (\d+)", head)[0])
        answers.append(head.partition(b"\r\n")[0] + b"|" + rest[:length])
        received = rest[length:]
    return answers


def request(target: bytes, *headers: bytes, version: bytes = b"1.1") -> bytes:
    return b"GET %s HTTP/%s\r\nHost: h\r\n%s\r\n" % (target, version, b"".join(header + b"\r\n" for header in headers))


CLOSE = b"Connection: close"


def test_probes_and_others_on_one_connection_are_answered_in_order(serving: tuple[str, Process, Path]) -> None:
    one, two, three, four = conversation(
        serving[0],
        request(b"/probe?target=a"),
        request(b"/-/healthy"),
        request(b"/probe?target=gone", b"Content-Length: 4") + b"body",
        request(b"/probe?target=a", CLOSE),
    )
    assert b"HTTP/1.1 200 OK|# HELP llm_replica_up " in one
    assert b'llm_replica_up{model="tiny"} 1.0' in one
    assert two == b"HTTP/1.1 200 OK|Servewatch exporter is healthy.\n"
    assert b"llm_replica_up 0.0" in three
    assert b'llm_replica_up{model="tiny"} 1.0' in four


@pytest.mark.parametrize(
    "target", [b"/probe?target=a", b"/probe/?target=a", b"/probe?target=%61", b"/probe?x=y&target=a"]
)
@pytest.mark.parametrize(("version", "header"), [(b"1.1", CLOSE), (b"1.0", b"X: y")])
def test_a_probe_is_answered_however_it_is_written(
    serving: tuple[str, Process, Path], target: bytes, version: bytes, header: bytes
) -> None:
    [answer] = conversation(serving[0], request(target, header, version=version))
    assert b" 200 OK|# HELP llm_replica_up " in answer
    assert b'\nllm_requests_running{model="tiny"} 8.0\n' in answer


def test_a_name_that_is_not_there_is_said_in_a_sentence(serving: tuple[str, Process, Path]) -> None:
    [answer] = conversation(serving[0], request(b"/probe?target=nobody", CLOSE))
    assert answer == b"HTTP/1.1 404 Not Found|No replica is named 'nobody' in the fleet file.\n"


def test_the_head_of_a_probe_has_no_body(serving: tuple[str, Process, Path]) -> None:
    answer = requests.head(f"{serving[0]}/probe?target=a", timeout=5)
    assert (answer.status_code, answer.content) == (200, b"")
    assert int(answer.headers["content-length"]) > 1000


def test_a_probe_cannot_be_posted(serving: tuple[str, Process, Path]) -> None:
    assert requests.post(f"{serving[0]}/probe?target=a", timeout=5).status_code == 405
