"""Drivers answer oddly: names of any bytes, very many cards, cards that move, lists that grow. No other card pays."""

import asyncio
import re
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from exporter.fleet import Fleet, Replica
from exporter.gpu.collector import Collector
from exporter.gpu.reading import Card, Failure, Snapshot
from exporter.gpu.worker import Worker
from exporter.parse import Parser
from exporter.scrape import Scraper
from simulator.fake_nvml import GIBIBYTE, FakeNvml, library, uuid
from tests.exporter.gpu.numbers import numbers

FIRST, SECOND = uuid(0), uuid(1)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    healthy = FakeNvml.healthy(tmp_path)
    for key, value in healthy.environment.items():
        monkeypatch.setenv(key, value)
    return healthy


def reads(*changes: Callable[[], None], rest: float = 0.0) -> list[Snapshot]:
    """Ask one worker after each change; answer all that it said."""

    async def ask() -> list[Snapshot]:
        worker = Worker(rest=rest)
        try:
            told = []
            for change in changes:
                change()
                told.append(await worker.read(10))
            return told
        finally:
            await worker.close()

    return asyncio.run(ask())


def read() -> Snapshot:
    return reads(lambda: None)[0]


def looks(*changes: Callable[[], None], fleet: Fleet | None = None) -> list[str]:
    """Answer the page of /gpu after each change."""

    async def ask() -> list[str]:
        scraper = Scraper()
        collector = Collector(scraper, lambda _: "m", 0.0)
        collector.use(fleet or Fleet(replicas=(Replica(name="r", url="http://127.0.0.1:8000"),)))
        try:
            pages = []
            for change in changes:
                change()
                pages.append(await collector.page(10))
            return pages
        finally:
            await collector.close()
            await scraper.close()

    return asyncio.run(ask())


NAMES = {
    "quotes": ('A "card" of \\x5c mine', 'A "card" of \\ mine'),
    "newlines": ("A\\x0acard\\x0dof\\x09mine", None),
    "no UTF-8": ("A card \\xff\\xfe of \\xc3", None),
    "a page's end": ("\\x0a# EOF\\x0allm_gpu_up 7", None),
    "nothing": ("", ""),
    "very long": ("z" * 95, "z" * 95),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_card_may_have_any_name(fake: FakeNvml, name: str) -> None:
    written, wanted = NAMES[name]
    fake.card(0, name=written)
    [page] = looks(lambda: None)
    parsed = Parser().parse(page.encode())
    found = {one.labels["gpu"]: one.labels.get("card", "") for one in parsed.series if one.name == "llm_gpu_info"}
    assert set(found) == {FIRST, SECOND}
    assert found[FIRST].isprintable()
    if wanted is not None:
        assert found[FIRST] == wanted
    assert parsed.values[[one.name for one in parsed.series].index("llm_gpu_up")] == 1


@pytest.mark.parametrize("key", ["gpu0.uuid", "gpu0.pci", "driver"])
@pytest.mark.parametrize("value", ["\\xff\\xfe\\x0a", ""])
def test_bytes_that_are_no_text_cost_no_card(fake: FakeNvml, key: str, value: str) -> None:
    fake.say({key: value})
    told = read()
    assert told.failure is None
    assert [(reading.up, len(reading.values)) for reading in told.readings] == [(True, 23), (True, 23)]
    assert all(reading.card.gpu and reading.card.gpu.isprintable() for reading in told.readings)
    assert all(fact.isprintable() for reading in told.readings for fact in reading.facts.values())


def test_two_hundred_cards_are_read_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = FakeNvml.healthy(tmp_path, 200)
    for key, value in many.environment.items():
        monkeypatch.setenv(key, value)
    start = time.monotonic()
    told = reads(lambda: None, lambda: many.card(150, all="!15"))
    assert time.monotonic() - start < 10
    assert [len(snapshot.readings) for snapshot in told] == [200, 200]
    assert [reading.card.gpu for reading in told[1].readings if not reading.up] == [uuid(150)]


def instance(index: int, number: int) -> dict[str, object]:
    """Answer the keys of an instance of the first card."""
    memory = dict.fromkeys(("memory_total", "memory_used", "memory_free"), GIBIBYTE)
    values = {"instance": number, "uuid": f"MIG-{number}", **memory}
    return {f"gpu0.mig{index}.{key}": value for key, value in values.items()}


def test_instances_come_and_go_between_reads(fake: FakeNvml) -> None:
    told = reads(
        lambda: None,
        lambda: fake.say({"gpu0.mig_mode": 1} | instance(0, 3)),
        lambda: fake.say(instance(0, 5) | instance(1, 3)),
        lambda: fake.say({"gpu0.mig0.instance": "!28", "gpu0.mig1.memory_total": "!15"}),
        lambda: fake.card(0, mig_mode=0),
    )
    assert [snapshot.failure for snapshot in told] == [None] * 5
    parts = [[one.card.partition for one in each.readings if one.card.gpu == FIRST] for each in told]
    assert parts == [[""], ["", "3"], ["", "5", "3"], ["", "3"], [""]]
    assert all(reading.up for each in told for reading in each.readings if not reading.card.partition)
    assert "memory_total_bytes" in numbers(told[4].readings[0])


def test_processes_of_a_divided_card_are_those_of_its_instances(fake: FakeNvml) -> None:
    fake.say({"gpu0.mig_mode": 1, "gpu0.processes": "1:10"} | instance(0, 3))
    assert next(iter(read().readings)).holds == ()


def test_a_card_that_comes_back_in_another_place_is_the_same_card(fake: FakeNvml) -> None:
    def swap() -> None:
        first, second = (
            {key.partition(".")[2]: value for key, value in fake.keys.items() if key.startswith(f"gpu{at}.")}
            for at in (0, 1)
        )
        first["all"] = None
        fake.card(0, **second, all=None)
        fake.card(1, **first)

    fake.card(0, power=111_000)
    fake.card(1, power=222_000)

    async def ask() -> None:
        worker = Worker(rest=0.05)
        try:
            await worker.read(10)
            fake.card(0, all="!15")
            lost, other = (await worker.read(10)).readings
            assert (lost.card.gpu, lost.up, other.up) == (FIRST, False, True)
            swap()
            async with asyncio.timeout(10):
                while True:
                    told = await worker.read(10)
                    power = {one.card.gpu: numbers(one).get("power_watts") for one in told.readings}
                    if told.failure is None and power == {FIRST: 111, SECOND: 222}:
                        return
                    await asyncio.sleep(0.02)
        finally:
            await worker.close()

    asyncio.run(ask())


def test_a_counter_that_goes_backwards_is_told_as_it_is(fake: FakeNvml) -> None:
    told = reads(lambda: None, lambda: fake.card(0, energy=17, pcie_replays=0, ecc_corrected=0))
    assert [numbers(each.readings[0])["energy_joules_total"] for each in told] == [7001.5, 0.017]
    assert told[1].dropped == 0


def test_a_card_without_ecc_beside_one_with_it(fake: FakeNvml) -> None:
    fake.card(0, ecc_corrected="!3", ecc_uncorrected="!3", rows_corrected="!3")
    first, second = (set(numbers(reading)) for reading in read().readings)
    assert second - first == {
        *("ecc_errors_total/corrected", "ecc_errors_total/uncorrected"),
        *(f"remapped_rows/{kind}" for kind in ("correctable", "uncorrectable", "pending", "failed")),
    }


@pytest.mark.parametrize("processes", ["!7", "!999", ",".join(f"{pid}:18446744073709551615" for pid in range(2, 150))])
def test_a_list_of_processes_that_grows_or_cannot_be_had_costs_nothing_else(fake: FakeNvml, processes: str) -> None:
    fake.card(0, processes=processes)
    told = read()
    assert (told.failure, [len(reading.values) for reading in told.readings]) == (None, [23, 23])


def test_an_old_driver_is_read_by_the_calls_that_it_has(fake: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library(old=True)))
    fake.card(0, throttle=0x40, processes="1:10")
    told = read()
    found = numbers(told.readings[0])
    assert (told.failure, len(found), told.readings[0].up) == (None, 23, True)
    assert found["throttled/hardware_thermal"] == 1
    assert found["memory_used_bytes"] == 61 * GIBIBYTE, "what is reserved counts as used there"


def test_a_worker_that_is_killed_while_it_hangs_is_followed_by_one_that_does_not(fake: FakeNvml) -> None:
    async def ask() -> None:
        worker = Worker(patience=60, rest=0.05)
        try:
            await worker.read(10)
            fake.card(0, temperature="~3600")
            assert (await worker.read(0.2)).failure is Failure.TIMEOUT
            assert worker._process is not None
            worker._process.send_signal(signal.SIGKILL)
            fake.card(0, temperature=50)
            async with asyncio.timeout(10):
                told = await worker.read(1)
                while told.failure is not None:
                    await asyncio.sleep(0.02)
                    told = await worker.read(1)
            assert [reading.card for reading in told.readings] == [Card(gpu=FIRST), Card(gpu=SECOND)]
        finally:
            await worker.close()

    asyncio.run(ask())


def test_fifty_readers_at_once_are_one_question(fake: FakeNvml) -> None:
    fake.card(0, temperature="~1")

    async def ask() -> set[str]:
        scraper = Scraper()
        collector = Collector(scraper, lambda _: "m", 5.0)
        collector.use(Fleet(replicas=()))
        try:
            return set(await asyncio.gather(*(collector.page(10) for _ in range(50))))
        finally:
            await collector.close()
            await scraper.close()

    start = time.monotonic()
    [page] = asyncio.run(ask())
    assert time.monotonic() - start < 5
    assert len(re.findall(r"^llm_gpu_up\{.*\} 1\.0$", page, re.MULTILINE)) == 2


@pytest.mark.parametrize("seed", range(3))
def test_whatever_the_driver_says_the_page_is_one_that_can_be_read(fake: FakeNvml, seed: int) -> None:
    odd = ("!1", "!3", "!6", "!15", "!999", "-1", "18446744073709551615", "\\xff", "", "nonsense", None, "0")
    keys = [key for key in fake.keys if key != "count"]
    before = dict(fake.keys)

    def change(step: int) -> None:
        fake.say(
            before
            | {key: odd[(step * 7 + at * (seed + 3)) % len(odd)] for at, key in enumerate(keys) if at % 3 == step % 3}
        )

    for page in looks(*(partial(change, step) for step in range(24))):
        Parser().parse(page.encode())
        assert "crashed" not in page
