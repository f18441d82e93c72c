"""dcgm-exporter's pages, old and new spellings, in base units; blanks are absent."""

import pytest

from exporter.gpu.dcgm import last_xids, read
from exporter.gpu.reading import Card, Snapshot
from exporter.parse import Page, Parser
from tests.exporter.gpu.numbers import numbers

A, B = "GPU-aaaa", "GPU-bbbb"
NEW = f'gpu="0",UUID="{A}",pci_bus_id="00000000:3B:00.0",device="nvidia0",modelName="NVIDIA H100",hostname="node-1",'
NEW += 'DCGM_FI_DRIVER_VERSION="570.172.08"'
WHOLE = {
    "SM_CLOCK": 1980,
    "MEM_CLOCK": 2619,
    "MEMORY_TEMP": 70,
    "GPU_TEMP": 61,
    "POWER_USAGE": 512.25,
    "TOTAL_ENERGY_CONSUMPTION": 7001500,
    "PCIE_REPLAY_COUNTER": 13,
    "GPU_UTIL": 93,
    "MEM_COPY_UTIL": 41,
    "XID_ERRORS": 31,
    "FB_FREE": 40000,
    "FB_USED": 40320,
    "FB_RESERVED": 1239,
    "UNCORRECTABLE_REMAPPED_ROWS": 0,
    "CORRECTABLE_REMAPPED_ROWS": 1,
    "ROW_REMAP_FAILURE": 0,
    "ECC_DBE_VOL_TOTAL": 2,
    "CLOCKS_EVENT_REASONS": 0x48,
}


def page(text: str) -> Page:
    return Parser().parse(text.encode())


def of(labels: str, numbers_of: dict[str, float], prefix: str = "DCGM_FI_DEV_") -> str:
    return "".join(f"{prefix}{name}{{{labels}}} {value}\n" for name, value in numbers_of.items())


def only(text: str) -> dict[str, float]:
    [reading] = read(page(text)).readings
    return numbers(reading)


def test_a_page_becomes_base_units() -> None:
    [reading] = read(page(of(NEW, WHOLE) + of(NEW, {"DRAM_ACTIVE": 0.37}, "DCGM_FI_PROF_"))).readings
    assert reading.card == Card(gpu=A)
    assert reading.facts == {"card": "NVIDIA H100", "driver": "570.172.08", "pci": "0000:3b:00.0", "hostname": "node-1"}
    assert numbers(reading) == {
        "utilization_ratio": pytest.approx(0.93),
        "memory_bandwidth_utilization_ratio": 0.37,
        "memory_used_bytes": 42278584320,
        "memory_free_bytes": 40000 * 2**20,
        "memory_total_bytes": 81559 * 2**20,
        "temperature_celsius": 61,
        "power_watts": 512.25,
        "energy_joules_total": pytest.approx(7001.5),
        "sm_clock_hertz": 1.98e9,
        "pcie_replays_total": 13,
        "ecc_errors_total/uncorrected": 2,
        "remapped_rows/correctable": 1,
        "remapped_rows/uncorrectable": 0,
        "remapped_rows/failed": 0,
        "throttled/power_cap": 0,
        "throttled/software_thermal": 0,
        "throttled/hardware_thermal": 1,
        "throttled/hardware_slowdown": 1,
        "throttled/power_brake": 0,
    }


@pytest.mark.parametrize(
    "labels",
    [
        f'gpu="0",UUID="{A}",modelName="T4",Hostname="h"',
        f'gpu="0",gpu_uuid="{A}",model_name="T4",hostname="h"',
        f'gpu="0",uuid="{A}",modelName="T4",hostname="h",exported_pod="p"',
    ],
)
def test_every_spelling_of_labels_is_the_same_card(labels: str) -> None:
    [reading] = read(page(of(labels, {"GPU_TEMP": 41}))).readings
    assert (reading.card, reading.facts["card"], reading.facts["hostname"]) == (Card(gpu=A), "T4", "h")


def test_both_spellings_on_one_page_are_one_card() -> None:
    text = of(f'UUID="{A}"', {"GPU_TEMP": 41}) + of(f'gpu_uuid="{A}"', {"NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": 2})
    assert only(text) == {"temperature_celsius": 41, "nvlink_errors_total": 2}


def test_a_card_without_uuid_is_known_by_host_and_index() -> None:
    [reading] = read(page(of('gpu="3",Hostname="node-1"', {"GPU_TEMP": 41}))).readings
    assert reading.card == Card(gpu="node-1/3")


@pytest.mark.parametrize(
    "name", ["GPU_UTIL", "FB_USED", "POWER_USAGE", "XID_ERRORS", "PCIE_REPLAY_COUNTER", "GPU_TEMP"]
)
@pytest.mark.parametrize(
    "blank",
    [
        "2147483632",
        "2147483634",
        "9223372036854775792",
        "9.223372036854775794e+18",
        "140737488355328",
        "NaN",
        "N/A",
        "",
    ],
)
def test_a_blank_is_absent_for_that_number_alone(name: str, blank: str) -> None:
    rest = {key: value for key, value in WHOLE.items() if key != name}
    text = of(NEW, rest) + f"DCGM_FI_DEV_{name}{{{NEW}}} {blank}\n"
    assert only(text) == only(of(NEW, rest))


@pytest.mark.parametrize("value", ["4294967295", "200000", "101", "-1"])
def test_an_impossible_utilization_is_dropped_and_counted(value: str) -> None:
    told = read(page(of(NEW, {"GPU_TEMP": 41}) + f"DCGM_FI_DEV_GPU_UTIL{{{NEW}}} {value}\n"))
    assert numbers(told.readings[0]) == {"temperature_celsius": 41}
    assert told.dropped == 1


@pytest.mark.parametrize("zero", [{}, {"GPU_UTIL": 0.0}])
def test_an_instance_is_as_busy_as_its_engine_and_never_zero(zero: dict[str, float]) -> None:
    labels = f'gpu="0",GPU_I_PROFILE="1g.10gb",GPU_I_ID="3",UUID="{A}"'
    [reading] = read(page(of(labels, {"GR_ENGINE_ACTIVE": 0.81}, "DCGM_FI_PROF_") + of(labels, zero))).readings
    assert (reading.card, numbers(reading)) == (Card(gpu=A, partition="3"), {"utilization_ratio": 0.81})


def test_an_instance_without_an_engine_figure_is_unknown() -> None:
    labels = f'gpu="0",GPU_I_ID="3",UUID="{A}"'
    [reading] = read(page(of(labels, {"GPU_UTIL": 0, "FB_USED": 10, "FB_FREE": 90}))).readings
    assert "utilization_ratio" not in numbers(reading)


def test_sensors_repeated_for_every_instance_are_the_cards_once() -> None:
    told = read(
        page(
            "".join(
                of(f'gpu="0",GPU_I_ID="{part}",UUID="{A}"', {"POWER_USAGE": 300, "FB_USED": 10, "FB_FREE": 90})
                for part in (3, 5)
            )
        )
    )
    found = {reading.card.partition: numbers(reading) for reading in told.readings}
    assert found[""] == {"power_watts": 300}
    assert found["3"] == found["5"]
    assert found["3"]["memory_total_bytes"] == 100 * 2**20


def test_a_physical_card_beside_a_divided_one_keeps_its_memory_and_the_divided_one_has_none() -> None:
    told = read(page(of(f'gpu="1",UUID="{B}"', {"FB_USED": 10}) + of(f'gpu="0",UUID="{A}"', {"GPU_TEMP": 41})))
    found = {reading.card.gpu: numbers(reading) for reading in told.readings}
    assert found[B] == {"memory_used_bytes": 10 * 2**20}
    assert found[A] == {"temperature_celsius": 41}


def test_a_card_that_two_pods_share_is_one_card() -> None:
    text = of(f'UUID="{A}",pod="a"', {"POWER_USAGE": 300}) + of(f'UUID="{A}",pod="b"', {"POWER_USAGE": 300})
    assert only(text) == {"power_watts": 300}


@pytest.mark.parametrize("labels", [f'UUID="{A}"', f'UUID="{A}",GPU_I_ID="3"'])
def test_a_card_without_memory_of_its_own_has_no_empty_one(labels: str) -> None:
    text = of(labels, {"FB_USED": 0, "FB_FREE": 0}) + of(f'UUID="{A}"', {"POWER_USAGE": 12.4})
    [*_, reading] = sorted(read(page(text)).readings, key=lambda one: one.card.partition)
    assert not [name for name in numbers(reading) if name.startswith("memory_") and name.endswith("_bytes")]


def test_a_name_of_a_card_is_one_short_line() -> None:
    [reading] = read(page(of(f'UUID="two\\nlines {"z" * 500}",modelName="a\0b"', {"POWER_USAGE": 300}))).readings
    assert reading.card.gpu.isprintable()
    assert len(reading.card.gpu) == 200
    assert reading.facts["card"].startswith("a\ufffdb")
    assert reading.facts["card"].isprintable()


def test_the_last_xid_is_a_code_by_card() -> None:
    assert last_xids(page(of(NEW, WHOLE) + of(f'UUID="{B}"', {"XID_ERRORS": 0}))) == {A: 31, B: 0}


@pytest.mark.parametrize("text", ["", "# only a comment\n", "up 1\nnode_load1 3\n", "DCGM_FI_DEV_GPU_TEMP 41\n"])
def test_a_strangers_page_has_no_cards(text: str) -> None:
    assert read(page(text)) == Snapshot()
