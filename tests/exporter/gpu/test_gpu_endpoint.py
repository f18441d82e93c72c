"""/gpu of an exporter that runs as a process, with the fake NVML, with pages beside it, and with nothing."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import requests

from exporter.expose import CONTENT_TYPE
from running.processes import Process
from running.tools import Tool
from simulator.fake_nvml import FakeNvml, uuid
from tests.exporter.pages import served
from tests.exporter.serving import BUSY, exporter

FIRST, SECOND = uuid(0), uuid(1)
FLEET = f"""\
replicas:
  - {{name: a, url: "http://127.0.0.1:1", model: m, gpus: [{FIRST}]}}
  - {{name: b, url: "http://127.0.0.1:2", model: n}}
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    healthy = FakeNvml.healthy(tmp_path)
    for key, value in healthy.environment.items():
        monkeypatch.setenv(key, value)
    return healthy


@pytest.fixture
def address(fake: FakeNvml, tmp_path: Path) -> Iterator[str]:
    assert fake.file.is_file()
    with started(tmp_path) as (found, _):
        yield found


def started(folder: Path, more: str = "") -> AbstractContextManager[tuple[str, Process]]:
    file = folder / "fleet.yml"
    file.write_text(FLEET + more)
    return exporter(file, folder / "log", "--min-interval", "1ms")


def page(address: str, timeout: float = 5) -> str:
    answer = requests.get(
        f"{address}/gpu", headers={"X-Prometheus-Scrape-Timeout-Seconds": str(timeout)}, timeout=timeout + 5
    )
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, CONTENT_TYPE)
    return answer.text


def test_cards_are_on_the_page_with_the_replicas_they_serve(address: str) -> None:
    lines = page(address).splitlines()
    for line in (
        f'llm_gpu_up{{gpu="{FIRST}"}} 1.0',
        f'llm_gpu_utilization_ratio{{gpu="{SECOND}"}} 0.93',
        f'llm_gpu_energy_joules_total{{gpu="{FIRST}"}} 7001.5',
        f'llm_gpu_throttled{{gpu="{FIRST}",reason="power_cap"}} 0.0',
        f'llm_replica_gpu_info{{replica="a",model="m",gpu="{FIRST}"}} 1.0',
        'llm_gpu_collector_up{source="nvml"} 1.0',
    ):
        assert line in lines
    assert not [line for line in lines if "pid" in line or "9.2" in line or "e+" in line.lower()]


def test_the_page_is_one_that_prometheus_takes(address: str, promtools: Tool) -> None:
    text = page(address)
    done = subprocess.run([promtools.path, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_a_lost_card_is_down_and_the_other_one_is_read(address: str, fake: FakeNvml) -> None:
    page(address)
    fake.card(0, all="!15")
    text = page(address)
    assert f'llm_gpu_up{{gpu="{FIRST}"}} 0.0' in text
    assert f'llm_gpu_failure{{gpu="{FIRST}",reason="lost"}} 1.0' in text
    assert f"# nvml: {FIRST}: the card has fallen off the bus\n" in text
    assert f'llm_gpu_power_watts{{gpu="{FIRST}"}}' not in text
    assert f'llm_gpu_power_watts{{gpu="{SECOND}"}} 512.25' in text
    assert f'llm_replica_gpu_info{{replica="a",model="m",gpu="{FIRST}"}} 1.0' in text


def test_a_driver_that_hangs_costs_neither_the_page_nor_the_end(fake: FakeNvml, tmp_path: Path) -> None:
    with started(tmp_path) as (address, process):
        page(address)
        fake.card(0, temperature="~3600")
        for _ in range(3):
            start = time.monotonic()
            text = page(address, timeout=0.5)
            assert time.monotonic() - start < 0.5 + BUSY
            assert 'llm_gpu_collector_failure{source="nvml",reason="timeout"} 1.0' in text
            assert f'llm_gpu_failure{{gpu="{FIRST}",reason="unseen"}} 1.0' in text
            assert "llm_gpu_up" not in text, "nobody can tell"
            assert "llm_gpu_power_watts" not in text, "nothing from an earlier page is repeated"
        assert requests.get(f"{address}/-/healthy", timeout=30).ok
        start = time.monotonic()
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait() == 0
        assert time.monotonic() - start < 2 + BUSY


def test_the_worker_does_not_outlive_an_exporter_that_is_killed(fake: FakeNvml, tmp_path: Path) -> None:
    assert fake.file.is_file()
    with started(tmp_path) as (address, process):
        page(address)
        workers = [pid for pid in _processes() if b"exporter.gpu" in _command(pid)]
        assert workers
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        deadline = time.monotonic() + 5
        while any(b"exporter.gpu" in _command(pid) for pid in workers):
            assert time.monotonic() < deadline
            time.sleep(0.02)


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_xids_are_counted_with_their_time(address: str, fake: FakeNvml) -> None:
    page(address)
    fake.say({"events": f"{FIRST}:31,{FIRST}:31"})
    wanted = f'llm_gpu_xid_errors_total{{gpu="{FIRST}",xid="31"}} 2.0'
    deadline = time.monotonic() + 10
    while wanted not in (text := page(address)):
        assert time.monotonic() < deadline, text
        time.sleep(0.05)
    [line] = [line for line in text.splitlines() if line.startswith("llm_gpu_xid_last_timestamp_seconds{")]
    assert abs(float(line.rpartition(" ")[2]) - time.time()) < 20


def test_pages_of_other_exporters_stand_beside_the_driver_and_never_twice(fake: FakeNvml, tmp_path: Path) -> None:
    assert fake.file.is_file()
    dcgm = f'DCGM_FI_DEV_POWER_USAGE{{UUID="{FIRST}"}} 99\nDCGM_FI_DEV_POWER_USAGE{{UUID="GPU-c"}} 100\n'
    with (
        served({"/metrics": dcgm.encode()}) as first,
        served({"/metrics": b'gpu_package_power{serial_number="6922"} 255\n'}) as second,
        started(tmp_path, f'gpu: {{dcgm: ["http://{first}"], amd: ["http://{second}", "http://127.0.0.1:1"]}}\n') as (
            address,
            _,
        ),
    ):
        lines = page(address).splitlines()
    power = sorted(line for line in lines if line.startswith("llm_gpu_power_watts"))
    assert power == sorted(
        [
            f'llm_gpu_power_watts{{gpu="{FIRST}"}} 512.25',
            f'llm_gpu_power_watts{{gpu="{SECOND}"}} 512.25',
            'llm_gpu_power_watts{gpu="GPU-c"} 100.0',
            'llm_gpu_power_watts{gpu="6922"} 255.0',
        ]
    )
    assert f'llm_gpu_collector_up{{source="dcgm",origin="{first}"}} 1.0' in lines
    assert 'llm_gpu_collector_failure{source="amd",origin="127.0.0.1:1",reason="unreachable"} 1.0' in lines


def test_a_host_without_cards_answers_and_says_why(tmp_path: Path, fake: FakeNvml) -> None:
    fake.say({"init": "!12"})
    with started(tmp_path) as (address, _):
        text = page(address)
    assert text.startswith("# nvml: libnvidia-ml.so.1 is not on this host")
    assert 'llm_gpu_collector_up{source="nvml"} 0.0' in text
    assert "llm_gpu_up" not in text


def test_the_driver_is_not_asked_where_fleet_yml_says_so(tmp_path: Path) -> None:
    with started(tmp_path, "gpu: {nvml: false}\n") as (address, _):
        assert "nvml" not in page(address)


def test_a_name_that_no_source_shows_is_told_where_people_look(tmp_path: Path, fake: FakeNvml) -> None:
    assert fake.file.is_file()
    with started(tmp_path) as (address, _):
        assert "no source shows" not in requests.get(address, timeout=5).text, "nobody has looked yet"
        (tmp_path / "fleet.yml").write_text(FLEET.replace(FIRST, uuid(7)))
        deadline = time.monotonic() + 20
        sentence = f"no source shows {uuid(7)}: correct gpus in fleet.yml, or name under gpu who shows the card"
        while f"# fleet.yml: replica a: {sentence}\n" not in page(address):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        landing = requests.get(address, timeout=5).text
    assert landing.count(sentence) == 1
    assert 'href="gpu"' in landing


def test_prometheus_finds_this_exporter_and_those_of_other_hosts(tmp_path: Path) -> None:
    with started(tmp_path, 'gpu: {nvml: false, exporters: ["https://node-2:9801", "http://exporter:9801"]}\n') as (
        address,
        _,
    ):
        found = requests.get(f"{address}/gpu/targets", headers={"Host": "exporter:9801"}, timeout=5).json()
    assert found == [
        {"targets": ["exporter:9801"], "labels": {"__metrics_path__": "/gpu", "__scheme__": "http"}},
        {"targets": ["node-2:9801"], "labels": {"__metrics_path__": "/gpu", "__scheme__": "https"}},
    ]
