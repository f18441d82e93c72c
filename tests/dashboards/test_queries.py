"""Queries of the boards: Prometheus parses them, and they ask for nothing that is not there."""

import re
from pathlib import Path

import pytest

from dashboards.queries import STATES, cannot_tell, state_code
from exporter.catalogue import STATE
from prometheus.indicators import TTFT_INDICATOR
from prometheus.windows import TILE
from running.tools import Tool
from tests.dashboards.generated import BOARDS, Asked, asked
from tests.dashboards.series import known_series, series_of, unparsed

QUERIES = [query for board in BOARDS.values() for query in asked(board)]
SCRAPES_IN_A_RATE = 4
SCRAPE_SECONDS = 10
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

every_query = pytest.mark.parametrize("query", QUERIES, ids=str)


def test_every_query_parses(promtools: Tool, tmp_path: Path) -> None:
    assert unparsed(promtools, [query.expr for query in QUERIES], tmp_path) == ""


@every_query
def test_a_query_asks_for_series_that_exist(query: Asked) -> None:
    found = series_of(query.expr)
    assert found
    assert found <= known_series()


@every_query
def test_a_rate_spans_four_scrapes(query: Asked) -> None:
    for number, unit in re.findall(r"\[(\d+)([smhd])", query.expr):
        assert int(number) * UNITS[unit] >= SCRAPES_IN_A_RATE * SCRAPE_SECONDS
    assert "$__interval" not in query.expr


@every_query
def test_a_fallback_of_zero_stands_only_beside_what_has_no_labels(query: Asked) -> None:
    if "vector(0)" in query.expr:
        assert " by " not in query.expr


def test_every_state_of_a_replica_has_a_number_and_a_name() -> None:
    assert [name for name, _ in STATES.values()] == list(STATE.values)
    assert len(STATES) == str(state_code()).count("== 1")


def test_a_model_that_is_down_is_not_said_to_be_mute() -> None:
    assert str(cannot_tell(TTFT_INDICATOR.total(TILE)).expr).startswith("(model:llm_replicas_ready:count")
