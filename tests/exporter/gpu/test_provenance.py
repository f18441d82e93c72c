"""METRICS.md says what each source tells and under which name: here each name is asked for what it is said to give."""

import asyncio
import re
from pathlib import Path

import pynvml
import pytest

from exporter import catalogue
from exporter.catalogue import METRICS, Group
from exporter.gpu import nvml
from exporter.gpu.field import Field
from exporter.gpu.provenance import ability, names
from exporter.gpu.reading import Snapshot
from exporter.gpu.sources import PAGE_SOURCES
from exporter.gpu.worker import Worker
from exporter.parse import Parser
from simulator.fake_nvml import FakeNvml

OF_NO_VALUE = {catalogue.GPU_INFO, catalogue.GPU_XID_ERRORS, catalogue.GPU_XID_TIME, catalogue.REPLICA_GPU_MEMORY}
LABELS = {"dcgm": 'UUID="GPU-a"', "amd": 'serial_number="69",clock_type="system"'}
ON_PAGES = [
    pytest.param(source, field, name, id=f"{source} {name} {field.detail}".strip())
    for source, of in PAGE_SOURCES.items()
    for field in of.fields
    for name in field.names
    if field.metric not in OF_NO_VALUE
]


def told(snapshot: Snapshot) -> set[tuple[str, str]]:
    return {(value.metric.name, value.detail) for reading in snapshot.readings for value in reading.values}


def page(source: str, of_names: set[str]) -> Snapshot:
    lines = "".join(f"{name}{{{LABELS[source]}}} 1\n" for name in sorted(of_names))
    return PAGE_SOURCES[source].read(Parser().parse(lines.encode()))


@pytest.mark.parametrize(("source", "field", "name"), ON_PAGES)
def test_a_name_gives_what_it_is_said_to_give(source: str, field: Field, name: str) -> None:
    parts = set(re.findall(r"\w+", name)) - {"max"}
    assert (field.metric.name, field.detail) in told(page(source, parts))


@pytest.mark.parametrize("source", PAGE_SOURCES)
def test_a_page_gives_nothing_that_is_not_said(source: str) -> None:
    fields = PAGE_SOURCES[source].fields
    everything = {part for field in fields for name in field.names for part in re.findall(r"\w+", name)}
    assert told(page(source, everything)) <= {(field.metric.name, field.detail) for field in fields}


@pytest.mark.parametrize("source", PAGE_SOURCES)
def test_what_describes_a_card_stands_in_the_labels_that_are_named(source: str) -> None:
    for field in PAGE_SOURCES[source].fields:
        for name in field.names if field.metric is catalogue.GPU_INFO else ():
            labels = f'{LABELS[source]},{name}="12.34"'
            number = "DCGM_FI_DEV_POWER_USAGE" if source == "dcgm" else "gpu_package_power"
            [reading] = PAGE_SOURCES[source].read(Parser().parse(f"{number}{{{labels}}} 1\n".encode())).readings
            assert reading.facts[field.detail] == "12.34", name


def test_the_driver_gives_what_is_said_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in FakeNvml.healthy(tmp_path).environment.items():
        monkeypatch.setenv(key, value)

    async def read() -> Snapshot:
        worker = Worker()
        try:
            return await worker.read(10)
        finally:
            await worker.close()

    snapshot = asyncio.run(read())
    said = {(field.metric.name, field.detail) for field in nvml.FIELDS if field.metric not in OF_NO_VALUE}
    assert told(snapshot) == said
    described = {field.detail for field in nvml.FIELDS if field.metric is catalogue.GPU_INFO}
    assert described == set(snapshot.readings[0].facts)


def test_every_call_that_is_named_is_one_of_the_library_and_of_our_code() -> None:
    source = Path(nvml.__file__).read_text(encoding="utf-8") + Path(nvml.__file__).with_name("xid.py").read_text()
    for field in nvml.FIELDS:
        for name in field.names:
            for call in re.findall(r"\b(?:nvml|NVML_)\w+", name):
                assert hasattr(pynvml, call), call
                assert call.startswith("NVML_FI") or f"pynvml.{call}" in source, call


def test_every_metric_has_a_word_for_every_source() -> None:
    for metric in METRICS:
        if metric.group is Group.GPU:
            for can, found in zip(ability(metric), names(metric), strict=True):
                assert can != "no" or not found
    assert ability(catalogue.GPU_THROTTLED) == ("yes", "yes", "yes (power_cap, hardware_thermal)")
    assert ability(catalogue.GPU_POWER_LIMIT) == ("yes", "yes", "no")
    assert names(catalogue.GPU_TEMPERATURE)[2] == "`gpu_junction_temperature`, else `gpu_edge_temperature`"
