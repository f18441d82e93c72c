"""METRICS.md tells all there is to tell; that it is the generated one, tests/test_generate.py sees to."""

import pytest

from exporter import catalogue
from exporter.engines import ENGINES
from exporter.failures import REASONS, STATES, Reason, State
from exporter.reference import metrics_md


def test_every_state_and_reason_is_explained() -> None:
    assert tuple(STATES) == tuple(State)
    assert tuple(REASONS) == tuple(Reason)
    text = metrics_md()
    for word, meaning in (*STATES.items(), *REASONS.items()):
        assert f"\n| `{word}` | {meaning} |\n" in text


@pytest.mark.parametrize("metric", catalogue.METRICS, ids=lambda metric: metric.name)
def test_every_metric_has_a_row_with_its_meaning(metric: catalogue.Metric) -> None:
    [row] = [line for line in metrics_md().splitlines() if line.startswith(f"| `{metric.name}` | {metric.kind.value} ")]
    assert metric.help in row


@pytest.mark.parametrize("name", ENGINES)
def test_every_name_that_an_engine_is_read_by_stands_in_the_table_of_sources(name: str) -> None:
    text = metrics_md()
    for reading in ENGINES[name].readings:
        for source in (*reading.names, *reading.plus, *reading.times):
            assert f"`{source}`".replace("|", r"\|") in text
