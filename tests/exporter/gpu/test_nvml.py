"""NVIDIA's own binding against the fake library: every number in base units, every fault a state with a sentence."""

import asyncio
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from exporter.catalogue import ROW_KIND, THROTTLE
from exporter.gpu.reading import Card, Failure, Snapshot
from exporter.gpu.worker import Worker
from simulator.fake_nvml import GIBIBYTE, FakeNvml, uuid
from tests.exporter.gpu.numbers import numbers

FIRST, SECOND = uuid(0), uuid(1)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    healthy = FakeNvml.healthy(tmp_path)
    for key, value in healthy.environment.items():
        monkeypatch.setenv(key, value)
    return healthy


def reads(*changes: Callable[[], None]) -> list[Snapshot]:
    """Ask one worker after each change; answer all that it said."""

    async def ask() -> list[Snapshot]:
        worker = Worker(rest=0)
        told = []
        try:
            for change in changes:
                change()
                told.append(await worker.read(10))
        finally:
            await worker.close()
        return told

    return asyncio.run(ask())


def read(*changes: Callable[[], None]) -> Snapshot:
    """Ask once, then after each change; answer what was said last."""
    return reads(lambda: None, *changes)[-1]


def test_numbers_are_in_base_units(fake: FakeNvml) -> None:
    fake.card(0, throttle=0x24)
    told = read()
    assert told.failure is None
    assert [reading.card for reading in told.readings] == [Card(gpu=FIRST), Card(gpu=SECOND)]
    assert numbers(told.readings[0]) == {
        "utilization_ratio": 0.93,
        "memory_bandwidth_utilization_ratio": 0.41,
        "memory_total_bytes": 80 * GIBIBYTE,
        "memory_used_bytes": 60 * GIBIBYTE,
        "memory_free_bytes": 19 * GIBIBYTE,
        "temperature_celsius": 61,
        "power_watts": 512.25,
        "power_limit_watts": 700,
        "energy_joules_total": 7001.5,
        "sm_clock_hertz": 1.98e9,
        "throttled/power_cap": 1,
        "throttled/software_thermal": 1,
        "throttled/hardware_thermal": 0,
        "throttled/hardware_slowdown": 0,
        "throttled/power_brake": 0,
        "ecc_errors_total/corrected": 7,
        "ecc_errors_total/uncorrected": 0,
        "remapped_rows/correctable": 1,
        "remapped_rows/uncorrectable": 0,
        "remapped_rows/pending": 0,
        "remapped_rows/failed": 0,
        "pcie_replays_total": 13,
        "nvlink_errors_total": 3,
    }


def test_a_card_is_described(fake: FakeNvml) -> None:
    assert fake.keys["gpu0.pci"] == "00000000:3B:00.0"
    facts = read().readings[0].facts
    assert facts["card"] == "NVIDIA H100 80GB HBM3"
    assert (facts["driver"], facts["pci"], facts["hostname"]) == ("570.172.08", "0000:3b:00.0", os.uname().nodename)


def test_an_idle_clock_slows_nobody_down(fake: FakeNvml) -> None:
    fake.card(0, throttle=0x1 | 0x2 | 0x100)
    found = numbers(read().readings[0])
    assert {value for name, value in found.items() if name.startswith("throttled/")} == {0}


NUMBERS_OF = {
    "utilization": {"utilization_ratio", "memory_bandwidth_utilization_ratio"},
    "memory_total": {"memory_total_bytes", "memory_used_bytes", "memory_free_bytes"},
    "temperature": {"temperature_celsius"},
    "power": {"power_watts"},
    "power_limit": {"power_limit_watts"},
    "energy": {"energy_joules_total"},
    "sm_clock": {"sm_clock_hertz"},
    "throttle": {f"throttled/{reason}" for reason in THROTTLE.values},
    "ecc_corrected": {"ecc_errors_total/corrected", "ecc_errors_total/uncorrected"},
    "rows_corrected": {f"remapped_rows/{kind}" for kind in ROW_KIND.values},
    "pcie_replays": {"pcie_replays_total"},
}
IMPOSSIBLE = [
    ("utilization", 4294967295, "utilization_ratio"),
    ("utilization", 200000, "utilization_ratio"),
    ("utilization", 101, "utilization_ratio"),
    ("memory_utilization", 4294967295, "memory_bandwidth_utilization_ratio"),
    ("memory_used", 2**64 - 1, "memory_used_bytes"),
    ("temperature", 4294967295, "temperature_celsius"),
    ("power", 4294967295, "power_watts"),
    ("energy", 2**64 - 1, "energy_joules_total"),
    ("sm_clock", 4294967295, "sm_clock_hertz"),
    ("ecc_uncorrected", 2**64 - 1, "ecc_errors_total/uncorrected"),
]


@pytest.mark.parametrize("code", [None, "!3", "!4", "!6", "!13", "!21", "!25"])
def test_what_a_card_does_not_support_is_absent_not_zero(fake: FakeNvml, code: str | None) -> None:
    before = dict(fake.keys)

    def only(key: str) -> None:
        fake.say(before | {f"gpu0.{key}": code})

    told = reads(lambda: None, *(partial(only, key) for key in NUMBERS_OF))
    everything = set(numbers(told[0].readings[0]))
    for (key, lost), snapshot in zip(NUMBERS_OF.items(), told[1:], strict=True):
        [reading, other] = snapshot.readings
        assert set(numbers(reading)) == everything - lost, key
        assert (reading.up, reading.failures) == (True, frozenset())
        assert set(numbers(other)) == everything


def test_a_number_that_cannot_be_true_is_left_out_and_counted(fake: FakeNvml) -> None:
    before = dict(fake.keys)

    def only(key: str, value: int) -> None:
        fake.say(before | {f"gpu0.{key}": value})

    told = reads(*(partial(only, key, value) for key, value, _ in IMPOSSIBLE))
    for (_, _, name), snapshot in zip(IMPOSSIBLE, told, strict=True):
        assert name not in numbers(snapshot.readings[0])
        assert (snapshot.dropped, snapshot.readings[0].up) == (1, True)


@pytest.mark.parametrize("total", ["!3", "0"])
def test_a_card_with_the_hosts_memory_has_none_of_its_own(fake: FakeNvml, total: str) -> None:
    fake.card(0, memory_total=total, memory_used=0, memory_free=0)
    told = read()
    assert not {name for name in numbers(told.readings[0]) if name.startswith("memory_") and name.endswith("_bytes")}
    assert (told.readings[0].up, told.dropped) == (True, 0)


@pytest.mark.parametrize(
    ("code", "failure", "sentence"),
    [
        (15, Failure.LOST, "the card has fallen off the bus"),
        (16, Failure.RESET_REQUIRED, "the card needs a reset"),
        (8, Failure.NO_POWER, "a power cable is not connected"),
        (28, Failure.LOST, "the driver does not find the card any more"),
        (999, Failure.UNKNOWN, "the driver answered: unknown error"),
    ],
)
def test_a_lost_card_is_down_and_hides_no_other_one(fake: FakeNvml, code: int, failure: Failure, sentence: str) -> None:
    told = read(lambda: fake.card(0, all=f"!{code}"))
    [lost, other] = told.readings
    assert (lost.card.gpu, lost.up, lost.failures, lost.values) == (FIRST, False, frozenset({failure}), ())
    assert lost.sentence == f"{FIRST}: {sentence}"
    assert (other.card.gpu, other.up, len(other.values)) == (SECOND, True, 23)


def test_a_card_that_is_lost_from_the_start_is_named_by_its_place(fake: FakeNvml) -> None:
    fake.card(0, handle="!15")
    [lost, other] = read().readings
    assert (lost.card.gpu, lost.up, lost.failures) == ("index:0", False, frozenset({Failure.LOST}))
    assert (other.card.gpu, other.up) == (SECOND, True)


@pytest.mark.parametrize("code", [11, 14, 17, 999])
def test_trouble_with_one_number_is_told_and_costs_only_that_number(fake: FakeNvml, code: int) -> None:
    fake.card(0, power=f"!{code}")
    reading = read().readings[0]
    assert (reading.up, reading.failures, len(reading.values)) == (True, frozenset({Failure.UNKNOWN}), 22)


@pytest.mark.parametrize(
    ("keys", "failure", "words"),
    [
        ({"init": "!9"}, Failure.NO_DRIVER, "not loaded"),
        ({"init": "!12"}, Failure.NO_LIBRARY, "libnvidia-ml.so.1"),
        ({"init": "!18"}, Failure.DRIVER_MISMATCH, "different versions"),
        ({"init": "!4"}, Failure.NO_PERMISSION, "may not ask"),
        ({"init": "!999"}, Failure.UNKNOWN, "unknown error"),
        ({"count": "0"}, Failure.NO_GPU, "finds no card"),
        ({"count": "!1"}, Failure.UNKNOWN, "ended the session"),
        ({"gpu0.all": "!18"}, Failure.DRIVER_MISMATCH, "different versions"),
        ({"gpu1.handle": "!1"}, Failure.UNKNOWN, "ended the session"),
        ({"gpu0.temperature": "!18"}, Failure.DRIVER_MISMATCH, "different versions"),
    ],
)
def test_a_driver_that_cannot_be_asked_is_a_state_with_a_sentence(
    fake: FakeNvml, keys: dict[str, object], failure: Failure, words: str
) -> None:
    fake.say(keys)
    told = read()
    assert (told.failure, told.readings) == (failure, ())
    assert words in told.sentence


def test_no_error_of_the_library_ends_the_worker(fake: FakeNvml) -> None:
    codes = (*range(1, 31), 999)
    for told in reads(*(partial(fake.card, 0, all=f"!{code}") for code in codes)):
        assert told.failure is not Failure.CRASHED
        assert told.failure is not None or len(told.readings) == 2


def test_a_host_without_the_library_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    assert read().failure in {Failure.NO_LIBRARY, None}, "None on a host that has cards"


def test_a_divided_card_keeps_its_sensors_and_its_instances_have_memory(fake: FakeNvml) -> None:
    fake.card(0, mig_mode=1, utilization="!3")
    for index, instance in enumerate((3, 5)):
        fake.say(
            {
                f"gpu0.mig{index}.instance": instance,
                f"gpu0.mig{index}.uuid": f"MIG-{instance}",
                f"gpu0.mig{index}.name": "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
                f"gpu0.mig{index}.memory_total": 10 * GIBIBYTE,
                f"gpu0.mig{index}.memory_used": 4 * GIBIBYTE,
                f"gpu0.mig{index}.memory_free": 6 * GIBIBYTE,
            }
        )
    [card, three, five, other] = read().readings
    assert card.card == Card(gpu=FIRST)
    assert not {name for name in numbers(card) if "memory" in name or "utilization" in name}
    assert numbers(card)["power_watts"] == 512.25
    assert (three.card, three.alias) == (Card(gpu=FIRST, partition="3"), "MIG-3")
    assert three.facts["card"] == "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
    assert numbers(three) == {
        "memory_total_bytes": 10 * GIBIBYTE,
        "memory_used_bytes": 4 * GIBIBYTE,
        "memory_free_bytes": 6 * GIBIBYTE,
    }
    assert five.card == Card(gpu=FIRST, partition="5")
    assert other.card == Card(gpu=SECOND)


def test_an_instance_never_gets_the_memory_of_its_card(fake: FakeNvml) -> None:
    fake.card(0, mig_mode=1)
    fake.say({"gpu0.mig0.instance": 3})
    [card, part, _] = read().readings
    assert (numbers(part), part.up, part.failures) == ({}, True, frozenset())
    assert "memory_total_bytes" not in numbers(card)


def test_every_xid_counts_and_an_equal_one_counts_again(fake: FakeNvml) -> None:
    async def watch() -> list[tuple[str, int, int]]:
        worker = Worker()
        found: list[tuple[str, int, int]] = []
        try:
            assert (await worker.read(10)).xids == ()
            fake.say({"events": f"{FIRST}:31,{FIRST}:31,{SECOND}:79"})
            async with asyncio.timeout(10):
                while sum(count for _, _, count in found) < 3:
                    found += [(xid.gpu, xid.xid, xid.count) for xid in (await worker.read(10)).xids]
                    await asyncio.sleep(0.02)
            assert (await worker.read(10)).xids == (), "told once"
        finally:
            await worker.close()
        return found

    counts: dict[tuple[str, int], int] = {}
    for gpu, xid, count in asyncio.run(watch()):
        counts[gpu, xid] = counts.get((gpu, xid), 0) + count
    assert counts == {(FIRST, 31): 2, (SECOND, 79): 1}


def test_cards_that_offer_no_events_are_read_all_the_same(fake: FakeNvml) -> None:
    fake.card(0, register="!3")
    fake.card(1, register="!3")
    told = read(lambda: None)
    assert (told.failure, len(told.readings), told.xids) == (None, 2, ())
