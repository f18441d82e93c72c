"""The worker: whatever the driver does, an answer in time, one process at most, and an end."""

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

import exporter.gpu.worker
from exporter.gpu.reading import Failure, Snapshot
from exporter.gpu.wire import line
from exporter.gpu.worker import Worker
from simulator.fake_nvml import FakeNvml
from tests.exporter.serving import BUSY

ANSWER = line(Snapshot())


def stub(program: str) -> tuple[str, ...]:
    """Answer a command in place of the worker's; `answer` prints a good one."""
    return (sys.executable, "-c", f"import os, sys, time\ndef answer(): print('''{ANSWER}''', flush=True)\n{program}")


def children() -> list[int]:
    """Answer the living children of this process; a dead one that nobody waited for counts."""
    return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    healthy = FakeNvml.healthy(tmp_path)
    for key, value in healthy.environment.items():
        monkeypatch.setenv(key, value)
    return healthy


def test_a_call_that_hangs_is_told_in_time_and_never_asked_twice(fake: FakeNvml) -> None:
    fake.card(0, temperature="~3600")

    async def ask() -> None:
        worker = Worker(patience=60)
        before = set(children())
        try:
            for _ in range(20):
                start = time.monotonic()
                told = await worker.read(0.1)
                assert time.monotonic() - start < 0.1 + BUSY
                assert told.failure is Failure.TIMEOUT
                assert "a call hangs in it" in told.sentence
                assert len(set(children()) - before) <= 1
        finally:
            start = time.monotonic()
            await worker.close()
            assert time.monotonic() - start < 1 + BUSY

    asyncio.run(ask())


def test_a_process_that_cannot_be_killed_is_never_joined_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process in uninterruptible sleep survives SIGKILL; here nobody sends it."""
    kills: list[asyncio.subprocess.Process] = []
    monkeypatch.setattr(exporter.gpu.worker, "_kill", kills.append)

    async def ask() -> None:
        worker = Worker(stub("time.sleep(3600)"), patience=0.05, rest=0)
        before = set(children())
        first = await worker.read(1)
        try:
            assert first.failure is Failure.TIMEOUT
            for _ in range(120):
                told = await worker.read(1)
                assert told.failure is Failure.TIMEOUT
            assert len(set(children()) - before) == 1
            assert kills
        finally:
            await asyncio.wait_for(worker.close(), 2)
            monkeypatch.undo()
            kills[0].kill()
            await kills[0].wait()

    asyncio.run(ask())


def test_a_driver_that_hangs_for_a_while_is_read_again_afterwards(fake: FakeNvml) -> None:
    fake.card(0, temperature="~3600")

    async def ask() -> None:
        worker = Worker(patience=0.3, rest=0)
        try:
            told = await worker.read(5)
            assert told.failure is Failure.TIMEOUT
            fake.card(0, temperature=50)
            async with asyncio.timeout(10):
                while told.failure is not None:
                    told = await worker.read(5)
                    await asyncio.sleep(0.01)
            assert len(told.readings) == 2
        finally:
            await worker.close()

    asyncio.run(ask())


def test_a_slow_start_is_waited_for(fake: FakeNvml) -> None:
    """Without persistence mode the driver takes seconds to wake eight cards: longer than a scrape may wait."""
    fake.say({"init": "~1"})

    async def ask() -> None:
        worker = Worker()
        try:
            told = await worker.read(0.1)
            assert told.failure is Failure.TIMEOUT
            async with asyncio.timeout(10):
                while told.failure is not None:
                    told = await worker.read(0.1)
        finally:
            await worker.close()

    asyncio.run(ask())


@pytest.mark.parametrize(
    "program", ["os.abort()", "sys.exit(3)", "print('no JSON', flush=True)", "print('{}', flush=True)"]
)
def test_a_process_that_dies_or_babbles_is_a_failure_not_an_exception(program: str) -> None:
    async def ask() -> Snapshot:
        worker = Worker(stub(program))
        try:
            return await worker.read(5)
        finally:
            await worker.close()

    assert asyncio.run(ask()).failure is Failure.CRASHED


def test_a_driver_that_cannot_be_asked_is_not_asked_all_the_time(tmp_path: Path) -> None:
    log = tmp_path / "starts"
    program = f"open({str(log)!r}, 'a').write('x'); sys.exit(1)"

    async def ask() -> None:
        worker = Worker(stub(program), rest=60)
        for _ in range(10):
            assert (await worker.read(5)).failure is Failure.CRASHED
        await worker.close()

    asyncio.run(ask())
    assert log.read_text() == "x"


def test_a_lost_card_gets_a_new_session_that_sees_it_after_a_reset(fake: FakeNvml) -> None:
    fake.card(0, handle="!15")

    async def ask() -> None:
        worker = Worker(rest=0.1)
        try:
            assert not (await worker.read(5)).readings[0].up
            fake.card(0, handle=None)
            async with asyncio.timeout(10):
                while True:
                    told = await worker.read(5)
                    if told.failure is None and all(reading.up for reading in told.readings):
                        break
                    await asyncio.sleep(0.02)
        finally:
            await worker.close()

    asyncio.run(ask())


@pytest.mark.usefixtures("fake")
def test_processes_threads_and_files_stay_as_many() -> None:
    async def ask() -> None:
        worker = Worker()
        try:
            await worker.read(5)
            pid = children()[-1]
            before = _census(pid)
            for _ in range(200):
                assert (await worker.read(5)).failure is None
            assert _census(pid) == before
        finally:
            await worker.close()

    asyncio.run(ask())


def _census(pid: int) -> tuple[int, int, int, int]:
    ours, theirs = Path("/proc/self"), Path(f"/proc/{pid}")
    return (
        len(list((ours / "task").iterdir())),
        len(list((ours / "fd").iterdir())),
        len(list((theirs / "task").iterdir())),
        len(list((theirs / "fd").iterdir())),
    )
