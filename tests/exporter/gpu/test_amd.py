"""Pages of AMD's device-metrics-exporter in the same names and units."""

from collections.abc import Mapping

import pytest

from exporter.gpu.amd import read
from exporter.gpu.reading import Card, Failure, Snapshot
from exporter.parse import Page, Parser
from tests.exporter.gpu.numbers import numbers

LABELS = (
    'gpu_id="0",serial_number="692231000131",card_model="AMD Instinct MI300X",gpu_partition_id="{part}",'
    'gpu_compute_partition_type="{kind}",gpu_memory_partition_type="nps1",hostname="node-2"'
)
WHOLE = {
    "gpu_gfx_activity": 93,
    "gpu_umc_activity": 41,
    "gpu_total_vram": 196592,
    "gpu_used_vram": 183265,
    "gpu_free_vram": 13327,
    "gpu_package_power": 255,
    "gpu_energy_consumed": 7001500000,
    "gpu_junction_temperature": 76,
    "gpu_ecc_correct_total": 7,
    "gpu_ecc_uncorrect_total": 0,
    "pcie_replay_count": 13,
    "gpu_health": 1,
    "gpu_violation_ppt_residency_percentage": 12,
    "gpu_violation_socket_thermal_residency_percentage": 0,
}


def page(text: str) -> Page:
    return Parser().parse(text.encode())


def of(numbers_of: Mapping[str, float], *, part: int = 0, kind: str = "spx", prefix: str = "") -> str:
    labels = LABELS.format(part=part, kind=kind)
    return "".join(f"{prefix}{name}{{{labels}}} {value}\n" for name, value in numbers_of.items())


def clocks(prefix: str = "", system: str = "GPU_CLOCK_TYPE_SYSTEM") -> str:
    labels = LABELS.format(part=0, kind="spx")
    return "".join(
        f'{prefix}gpu_clock{{{labels},clock_type="{kind}",clock_index="{index}"}} {value}\n'
        for kind, index, value in (
            ("GPU_CLOCK_TYPE_MEMORY", 8, 1292),
            (system, 0, 1533),
            ("GPU_CLOCK_TYPE_VIDEO", 2, 900),
        )
    )


@pytest.mark.parametrize("prefix", ["", "amd_", "site_7_"])
@pytest.mark.parametrize("system", ["GPU_CLOCK_TYPE_SYSTEM", "system"])
def test_a_page_becomes_base_units(prefix: str, system: str) -> None:
    [reading] = read(page(of(WHOLE, prefix=prefix) + clocks(prefix, system))).readings
    assert reading.card == Card(gpu="692231000131")
    assert reading.facts == {"card": "AMD Instinct MI300X", "driver": "", "hostname": "node-2"}
    assert (reading.up, reading.failures) == (True, frozenset())
    assert numbers(reading) == {
        "utilization_ratio": pytest.approx(0.93),
        "memory_bandwidth_utilization_ratio": pytest.approx(0.41),
        "memory_total_bytes": 196592 * 2**20,
        "memory_used_bytes": 183265 * 2**20,
        "memory_free_bytes": 13327 * 2**20,
        "temperature_celsius": 76,
        "power_watts": 255,
        "energy_joules_total": pytest.approx(7001.5),
        "sm_clock_hertz": 1.533e9,
        "ecc_errors_total/corrected": 7,
        "ecc_errors_total/uncorrected": 0,
        "pcie_replays_total": 13,
        "throttled/power_cap": 1,
        "throttled/hardware_thermal": 0,
    }


def test_older_cards_name_power_and_temperature_otherwise() -> None:
    [reading] = read(page(of({"gpu_average_package_power": 300, "gpu_edge_temperature": 50}))).readings
    assert numbers(reading) == {"power_watts": 300, "temperature_celsius": 50}


@pytest.mark.parametrize(
    "labels", ['card_model="102-G30211-00",card_series="AMD INSTINCT MI300X"', 'card_model="AMD INSTINCT MI300X"']
)
def test_a_card_is_described_by_what_the_page_has(labels: str) -> None:
    text = f'gpu_package_power{{serial_number="69",{labels},driver_version="6.12.12",hostname="node-2"}} 255\n'
    [reading] = read(page(text)).readings
    assert reading.facts == {"card": "AMD INSTINCT MI300X", "driver": "6.12.12", "hostname": "node-2"}


@pytest.mark.parametrize("part", [0, 1])
def test_memory_that_is_not_used_is_free_where_the_page_does_not_say(part: int) -> None:
    memory = {"gpu_total_vram": 24574, "gpu_used_vram": 100}
    readings = read(page(of(memory, part=part, kind="cpx" if part else "spx"))).readings
    [found] = [numbers(reading) for reading in readings]
    assert found["memory_free_bytes"] == 24474 * 2**20


def test_memory_in_use_beyond_all_there_is_leaves_no_number_for_what_is_free() -> None:
    [reading] = read(page(of({"gpu_total_vram": 100, "gpu_used_vram": 101}))).readings
    assert "memory_free_bytes" not in numbers(reading)


@pytest.mark.parametrize("name", sorted(set(WHOLE) - {"gpu_health"}))
@pytest.mark.parametrize("blank", ["65535", "4294967295", "1.8446744073709552e+19", "2147483647", "N/A"])
def test_a_blank_is_absent_for_that_number_alone(name: str, blank: str) -> None:
    rest = {key: value for key, value in WHOLE.items() if key != name}
    broken = f"{name}{{{LABELS.format(part=0, kind='spx')}}} {blank}\n"
    [reading] = read(page(of(rest) + broken)).readings
    assert numbers(reading) == numbers(read(page(of(rest))).readings[0])


def test_a_partition_has_memory_and_the_card_keeps_its_sensors() -> None:
    ghost = dict.fromkeys(("gpu_package_power", "gpu_junction_temperature", "gpu_gfx_activity", "gpu_total_vram"), 0.0)
    memory = {"gpu_total_vram": 24574, "gpu_used_vram": 100, "gpu_free_vram": 24474}
    text = of(WHOLE | memory, kind="cpx") + of(memory | {"gpu_package_power": 0}, part=1, kind="cpx")
    told = read(page(text + of(ghost, part=2, kind="cpx")))
    found = {reading.card.partition: numbers(reading) for reading in told.readings}
    assert set(found) == {"", "0", "1"}, "a partition that reports zeros tells nothing"
    assert found["0"] == found["1"]
    assert found["1"]["memory_total_bytes"] == 24574 * 2**20
    assert found[""]["power_watts"] == 255
    assert not {"utilization_ratio", "memory_total_bytes"} & set(found[""])


def test_a_card_without_memory_of_its_own_has_no_empty_one() -> None:
    memory = {"gpu_total_vram": 0, "gpu_used_vram": 0, "gpu_free_vram": 0}
    [reading] = read(page(of(WHOLE | memory))).readings
    assert not [name for name in numbers(reading) if name.startswith("memory_") and name.endswith("_bytes")]


def test_an_unhealthy_card_is_in_trouble_and_still_read() -> None:
    [reading] = read(page(of(WHOLE | {"gpu_health": 0}))).readings
    assert (reading.up, reading.failures) == (True, frozenset({Failure.UNKNOWN}))
    assert numbers(reading)["power_watts"] == 255


def test_a_card_without_serial_number_is_known_by_host_and_index() -> None:
    [reading] = read(page('gpu_package_power{gpu_id="3",serial_number="",hostname="node-2"} 255\n')).readings
    assert reading.card == Card(gpu="node-2/3")


@pytest.mark.parametrize("text", ["", "gpu_nodes_total 8\n", 'vllm:gpu_cache_usage_perc{model_name="m"} 1\n'])
def test_a_strangers_page_has_no_cards(text: str) -> None:
    assert read(page(text)) == Snapshot()
