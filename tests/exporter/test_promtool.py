"""Every page that we write passes the linter of Prometheus."""

import subprocess
from pathlib import Path

import pytest

from exporter.engines import ENGINES
from exporter.failures import Reason, State
from exporter.fleet import load
from exporter.status import Serving, Status, status_text
from exporter.telemetry import Telemetry
from running.tools import Tool
from tests.exporter.captured import GOLDEN

ROOT = Path(__file__).parents[2]
FAILED = Status(
    serving=(Serving(model='odd "name"\\\n', up=False, state=State.BROKEN),),
    duration=1.5, errors={Reason.PARSE: 3}, dropped=7,
    missing=ENGINES["vllm"].required,
)  # fmt: skip


def complaints(tool: Tool, page: str) -> str:
    done = subprocess.run([tool.path, "check", "metrics"], input=page, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize("golden", sorted(file.name for file in GOLDEN.iterdir()))
def test_golden_pages_are_clean(promtools: Tool, golden: str) -> None:
    assert complaints(promtools, (GOLDEN / golden).read_text()) == ""


def test_the_page_of_a_failure_is_clean(promtools: Tool) -> None:
    assert complaints(promtools, status_text(FAILED)) == ""


def test_the_exporters_own_page_is_clean(promtools: Tool) -> None:
    page = Telemetry().page(load(ROOT / "fleet.yml"), ["qwen3-8b", "qwen3-8b", "", "llama-3.2-3b"])
    assert complaints(promtools, page) == ""
