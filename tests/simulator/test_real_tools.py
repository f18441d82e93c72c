"""The real Prometheus tools accept the pages, and the real Alertmanager reaches the phone."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
import requests
import yaml

from running.tools import Tool
from simulator.config import load_fleet
from simulator.engine_loop import Page
from simulator.llama_server_page import LlamaServerPage
from simulator.sequence import Gauges
from simulator.vllm_page import VllmPage
from tests.simulator.processes import phone

FLEET = load_fleet(Path("simulator/demo.yml"))
T = TypeVar("T")
PAGES: dict[str, Page] = {
    "vllm": VllmPage(FLEET.replicas[0].model, started_at=1.0),
    "llama-server": LlamaServerPage(FLEET.replicas[3].model, started_at=1.0),
}


@pytest.mark.parametrize("engine", list(PAGES))
def test_promtool_parses_the_page(engine: str, promtools: Tool) -> None:
    body, _ = PAGES[engine].render("", Gauges())
    checked = subprocess.run([promtools.path, "check", "metrics"], input=body, capture_output=True, check=False)
    assert b"error while linting" not in checked.stderr
    assert checked.returncode in (0, 3), checked.stderr  # 3: the linter has opinions on the engines' names


def until(found: Callable[[], T | None], seconds: float = 20.0) -> T:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        value = found()
        if value is not None:
            return value
        time.sleep(0.05)
    raise AssertionError(f"nothing within {seconds} s")


@contextmanager
def alertmanager(binary: Path, port: int, directory: Path, phone_url: str) -> Iterator[str]:
    receiver = {"name": "page", "webhook_configs": [{"url": f"{phone_url}/alertmanager/page", "send_resolved": True}]}
    route = {"receiver": "page", "group_by": ["alertname"], "group_wait": "100ms", "group_interval": "1s"}
    config = directory / "alertmanager.yml"
    config.write_text(yaml.safe_dump({"route": route, "receivers": [receiver]}))
    url = f"http://127.0.0.1:{port}"
    with (directory / "log").open("wb") as log:
        arguments = [f"--config.file={config}", f"--storage.path={directory}", "--cluster.listen-address="]
        running = subprocess.Popen(
            [binary, *arguments, f"--web.listen-address={url.removeprefix('http://')}"], stdout=log, stderr=log
        )
    try:
        until(lambda: True if answers(url) else None)
        yield url
    finally:
        running.terminate()
        running.wait(timeout=10)


def answers(url: str) -> bool:
    try:
        return requests.get(f"{url}/-/ready", timeout=2).ok
    except requests.ConnectionError:
        return False


def test_alertmanager_reaches_the_phone_firing_and_resolved(
    alertmanager_binaries: Tool, free_port: int, tmp_path: Path
) -> None:
    began = datetime.now(UTC)

    def raise_alert(ends: datetime) -> None:
        alert = {
            "labels": {"alertname": "LLMModelDown", "model": "qwen3-8b"},
            "annotations": {"summary": "qwen3-8b is down"},
            "startsAt": began.isoformat(),
            "endsAt": ends.isoformat(),
        }
        requests.post(f"{url}/api/v2/alerts", json=[alert], timeout=5).raise_for_status()

    def told(status: str) -> dict[str, Any] | None:
        messages = requests.get(f"{address}/api/messages", params={"status": status}, timeout=5).json()
        return messages[0] if messages else None

    with phone() as address, alertmanager(alertmanager_binaries.path, free_port, tmp_path, address) as url:
        raise_alert(began + timedelta(minutes=5))
        firing = until(lambda: told("firing"))
        raise_alert(datetime.now(UTC))
        resolved = until(lambda: told("resolved"))
    assert firing["annotations"] == {"summary": "qwen3-8b is down"}
    assert firing["fingerprint"] == resolved["fingerprint"]
    assert firing["starts_at"] == resolved["starts_at"]
