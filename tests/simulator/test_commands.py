"""The command line starts, breaks, heals and stops, and says what is wrong in one sentence."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
import yaml

from simulator.__main__ import main
from tests.simulator.processes import Process, command, phone
from tests.simulator.small_fleet import document
from tests.simulator.webhooks import alert, notification

AT_ONCE = 10  # seconds, on a busy machine; what it does not wait for would take longer


@pytest.fixture
def config(tmp_path: Path) -> Path:
    whole = document(slots=16)
    whole["load"] = {"models": {"qwen": {"rate": 30, "prompt_tokens": 20, "max_tokens": 10}}}
    path = tmp_path / "small.yml"
    path.write_text(yaml.safe_dump(whole))
    return path


@pytest.fixture
def fleet(config: Path) -> Iterator[tuple[Process, str]]:
    with command("fleet", "--config", str(config), "--listen", "127.0.0.1:0") as process:
        yield process, process.wait_for(r"control API on (http://\S+)")[1]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "simulator", *arguments], capture_output=True, text=True, timeout=30, check=False
    )


def test_a_replica_is_broken_and_healed_from_the_command_line(fleet: tuple[Process, str]) -> None:
    _, control = fleet
    broken = run("break", "v", "slow_decode", "factor=4", "--for", "1m", "--control", control)
    assert broken.returncode == 0
    faults = requests.get(control, timeout=5).json()["replicas"][0]["faults"]
    assert faults["slow_decode"]["factor"] == 4
    assert faults["slow_decode"]["heals_in"] > 50
    assert run("heal", "v", "--control", control).returncode == 0
    assert requests.get(control, timeout=5).json()["replicas"][0]["faults"] == {}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("break", "x", "kill"), "there is no replica 'x'; there are v, l"),
        (("break", "v", "slow_decode", "4"), "expected KEY=VALUE, got '4'"),
        (("heal", "v", "kill"), "v does not have the fault 'kill'; it has none"),
    ],
)
def test_what_cannot_be_is_said_with_exit_code_1(
    fleet: tuple[Process, str], arguments: tuple[str, ...], said: str
) -> None:
    done = run(*arguments, "--control", fleet[1])
    assert done.returncode == 1
    assert said in done.stderr


def test_a_person_reads_the_fleet_as_text(fleet: tuple[Process, str]) -> None:
    text = requests.get(fleet[1], headers={"Accept": "text/html"}, timeout=5).text
    assert [line.split()[0] for line in text.splitlines()] == ["v", "l"]
    assert "ready" in text


def test_the_fleet_stops_at_once_also_with_streams_open(fleet: tuple[Process, str]) -> None:
    process, control = fleet
    url = requests.get(control, timeout=5).json()["replicas"][0]["url"]
    body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 400, "stream": True, "ignore_eos": True}
    with requests.post(f"{url}/v1/chat/completions", json=body, stream=True, timeout=5) as answer:
        assert answer.status_code == 200
        code, seconds = process.end()
    assert code == 0
    assert seconds < AT_ONCE


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_load_generator_reports_and_stops_at_once(
    fleet: tuple[Process, str], config: Path, number: signal.Signals
) -> None:
    with command("load", "--config", str(config), "--control", fleet[1], "--every", "0.5") as load:
        load.wait_for(r"^qwen: \d+ sent, [1-9]\d* finished, 0 failed, TTFT p95 0\.\d\d s$")
        code, seconds = load.end(number)
    assert code == 0
    assert seconds < AT_ONCE


def test_the_load_generator_survives_the_fleet(fleet: tuple[Process, str], config: Path) -> None:
    process, control = fleet
    with command("load", "--config", str(config), "--control", control, "--every", "0.3") as load:
        load.wait_for(r" [1-9]\d* finished, 0 failed")
        process.end()
        load.wait_for(r" 0 finished, [1-9]\d* failed")
        assert load.end()[0] == 0


def test_the_load_generator_waits_for_the_control_api(config: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with command("load", "--config", str(config), "--control", f"http://127.0.0.1:{port}") as load:
        load.wait_for("waiting for the control API")
        assert load.end()[0] == 0


def test_the_phone_keeps_its_messages_over_a_restart(tmp_path: Path) -> None:
    store = str(tmp_path / "below" / "phone.jsonl")
    with phone("--store", store) as address:
        requests.post(f"{address}/alertmanager/page", json=notification(alert()), timeout=5)
    with phone("--store", store) as address:
        assert len(requests.get(f"{address}/api/messages", timeout=5).json()) == 1


def test_the_phone_stops_at_once_also_while_somebody_watches() -> None:
    with command("phone", "--listen", "127.0.0.1:0") as process:
        address = process.wait_for(r"phone on (http://\S+)")[1]
        with requests.get(f"{address}/api/events", stream=True, timeout=5) as answer:
            assert answer.status_code == 200
            code, seconds = process.end()
    assert code == 0
    assert seconds < AT_ONCE


@pytest.mark.parametrize("arguments", [("fleet",), ("phone",)])
def test_a_taken_port_is_named(arguments: tuple[str, ...]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run(*arguments, "--listen", f"127.0.0.1:{port}")
    assert done.returncode == 1
    assert f"127.0.0.1:{port}: Address already in use; end what uses it or choose another port" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_taken_port_of_a_replica_is_named(config: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        whole = yaml.safe_load(config.read_text())
        whole["replicas"][1]["port"] = port
        config.write_text(yaml.safe_dump(whole))
        done = run("fleet", "--config", str(config), "--listen", "127.0.0.1:0")
    assert done.returncode == 1
    assert f"127.0.0.1:{port}: Address already in use" in done.stderr


def test_a_bad_configuration_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.yml"
    path.write_text("replicas: 3\n")
    assert main(["fleet", "--config", str(path)]) == 1
    assert "bad.yml" in capsys.readouterr().err


def test_nobody_at_the_control_api_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    assert main(["heal", "v", "--control", f"http://127.0.0.1:{port}"]) == 1
    assert "is the fleet running?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [(), ("melt",), ("fleet", "--listen", "9810"), ("load", "--rate", "0"), ("break",)]
)
def test_wrong_usage_is_exit_code_2(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert ended.value.code == 2
    assert "usage: python -m simulator" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", "fleet", "load", "phone", "break", "heal"])
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"] if name else ["--help"])
    assert ended.value.code == 0
    assert len(capsys.readouterr().out) > 200


def test_a_restarted_phone_gets_its_port_back_at_once() -> None:
    with command("phone", "--listen", "127.0.0.1:0") as first:
        address = first.wait_for(r"phone on (http://\S+)")[1]
        requests.get(f"{address}/-/healthy", timeout=5)
        first.end()
    began = time.monotonic()
    with command("phone", "--listen", address.removeprefix("http://")) as second:
        second.wait_for("phone on")
    assert time.monotonic() - began < 10
