"""The boards on the running product: every query answers, in health and when everything is down.

Exporter, simulator, load and alerts run on free ports with compressed time; each Prometheus on this machine is asked.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import pytest
import requests

from alerts.catalogue import ALERTS
from drills.model import Fault
from drills.model_down import DRILL
from drills.run import Parts
from drills.stack import started
from exporter import catalogue
from running import services, tools
from running.ports import LOOPBACK, free_port
from running.tools import Tool
from tests.dashboards.generated import BOARDS, Asked, asked
from tests.dashboards.series import series_of
from tests.runbooks.pages import PAGES, Page

TIME_SCALE = 20
PATIENCE_SECONDS = 60.0
REPLICAS = ("vllm-a", "vllm-b", "vllm-c", "llama-a", "llama-b")
MODELS = {"qwen3-8b", "llama-3.2-3b"}

QUERIES = {str(query): query for board in BOARDS.values() for query in asked(board)}
MAY_BE_SILENT = {
    "fleet: Firing alerts A": "nothing is wrong",
    "fleet: KV cache in use C": "both engines of the demo tell",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The product, and one Prometheus that watches it."""

    parts: Parts
    url: str

    def answer(self, query: Asked) -> list[dict[str, Any]]:
        """Answer the series of a query, asked for the last seconds as Grafana asks for the last hours."""
        if query.instant:
            return self.instant(query.expr)
        now = time.time()
        return self._get("query_range", query=query.expr, start=now - 5, end=now, step=1)

    def instant(self, expression: str) -> list[dict[str, Any]]:
        """Answer the series of an expression as they are now."""
        return self._get("query", query=expression)

    def series(self) -> set[str]:
        """Answer the names of all series."""
        return set(self._get("label/__name__/values"))

    def choices(self, board: dict[str, Any], variable: str) -> set[str]:
        """Answer what a variable of a board offers."""
        [found] = [each for each in board["templating"]["list"] if each["name"] == variable]
        selector, _, label = found["definition"].removeprefix("label_values(").removesuffix(")").rpartition(", ")
        return set(self._get(f"label/{label}/values", **{"match[]": selector.replace("$model", ".*")}))

    def number(self, name: str) -> float:
        """Answer the one value of a query; NaN while it has none."""
        series = self.answer(QUERIES[name])
        return float(series[0]["value"][1]) if series else math.nan

    def _get(self, path: str, **parameters: str | float) -> list[Any]:
        answer = requests.get(f"{self.url}/api/v1/{path}", params=parameters, timeout=10)
        assert answer.status_code == 200, answer.text
        data = answer.json()["data"]
        return list(data["result"] if isinstance(data, dict) else data)


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Running]]:
    """Run the product once, watched by every Prometheus at the same time: they all need the same seconds to warm up."""
    directory = tmp_path_factory.mktemp("product")
    config = directory / "generated/prometheus/generated/prometheus.yml"
    with started(directory, replace(DRILL, cards=len(REPLICAS)), TIME_SCALE) as parts, ExitStack() as watchers:
        found = {}
        for tool in tools.all_versions("prometheus"):
            port, data = free_port(), directory / f"prometheus-{tool.version}"
            log = data.with_suffix(".log")
            watchers.enter_context(services.start_prometheus(tool.path, config=config, data=data, port=port, log=log))
            found[tool.version] = Running(parts=parts, url=f"http://{LOOPBACK}:{port}")
        yield found


@pytest.fixture(scope="module")
def running(product: dict[str, Running], prometheus_binaries: Tool) -> Running:
    return product[prometheus_binaries.version]


@pytest.fixture
def everything_down(running: Running) -> Iterator[None]:
    faults = [Fault(replica=replica, name="kill") for replica in REPLICAS]
    for fault in faults:
        running.parts.simulator.break_(fault)
    yield
    for fault in faults:
        running.parts.simulator.heal(fault)


def silent(running: Running) -> set[str]:
    return {name for name, query in QUERIES.items() if not running.answer(query)}


def wait(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(0.5)
    return met


def test_every_query_answers_on_the_demo_fleet(running: Running) -> None:
    assert wait(lambda: silent(running) <= set(MAY_BE_SILENT)), silent(running) - set(MAY_BE_SILENT)


def test_an_engine_without_histograms_is_said_to_be_mute(running: Running) -> None:
    mute = running.answer(QUERIES["fleet: Time to first token D"])
    assert {series["metric"]["model"] for series in mute} == {"llama-3.2-3b"}


def test_the_board_offers_the_models_and_replicas_of_the_fleet(running: Running) -> None:
    board = BOARDS["dashboards/generated/fleet.json"]
    assert running.choices(board, "model") == MODELS
    assert running.choices(board, "replica") == set(REPLICAS)


ONLY_IN_TROUBLE = {
    *(metric.name for metric in (catalogue.GPU_COLLECTOR_FAILURE, catalogue.GPU_TROUBLE)),
    *(metric.name for metric in (catalogue.GPU_XID_ERRORS, catalogue.GPU_XID_TIME)),
    catalogue.MISSING_SERIES.name,
    catalogue.DRAIN_EXPIRY.name,  # while a replica is marked
    catalogue.REPLICA_GPU_MEMORY.name,  # where engine and exporter share a host and a driver
}
"""Series of runbooks that a healthy fleet does not have."""


def test_every_series_that_a_runbook_names_exists(running: Running) -> None:
    named = {name for page in PAGES.values() for block in page.blocks("promql") for name in series_of(block)}
    named -= ONLY_IN_TROUBLE
    assert wait(lambda: named <= running.series()), named - running.series()


def test_what_the_runbook_of_an_alert_verifies_has_an_answer(running: Running) -> None:
    pages = [PAGES[alert.name] for alert in ALERTS]  # a procedure asks what is so only while it is followed
    verified = {
        f"{page.name}: {block}": block
        for page in pages
        for block in Page(name=page.name, text=page.sections().get("Verify", "")).blocks("promql")
        if not series_of(block) & ONLY_IN_TROUBLE
    }

    def unanswered() -> list[str]:
        return [name for name, block in verified.items() if not running.instant(block)]

    assert wait(lambda: not unanswered()), unanswered()


@pytest.mark.usefixtures("everything_down")
def test_the_board_still_knows_the_models_when_nothing_lives(running: Running) -> None:
    assert wait(lambda: running.number("fleet: Models without a ready replica A") == len(MODELS))
    assert wait(lambda: running.number("fleet: Pages firing A") == len(MODELS))
    alerts = {series["metric"]["alertname"] for series in running.answer(QUERIES["fleet: Firing alerts A"])}
    assert "LLMModelDown" in alerts
    lines = {series["metric"]["model"] for series in running.answer(QUERIES["fleet: Models A"])}
    assert lines == MODELS
    assert running.choices(BOARDS["dashboards/generated/fleet.json"], "model") == MODELS
