"""Sloth: a specification per model, whose queries are ours over Sloth's windows."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings

from alerts.exchange import documents, sloth
from alerts.objectives import groups as objective_groups
from exporter.document import FleetError
from exporter.fleet import Fleet, load
from prometheus.indicators import groups
from prometheus.lint.reading import read
from prometheus.lint.tree import selectors
from running.paths import ROOT
from tests.alerts.exchange.fleets import fleets

FLEET = load(ROOT / "fleet.yml")
NAME = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.]*[A-Za-z0-9]")
WINDOWS = ("5m", "30m", "1h", "2h", "6h", "1d", "3d")
"""Those of Sloth's catalogue for 28d and 30d."""


def test_the_queries_ask_for_series_that_are_recorded() -> None:
    recorded = {rule.recorded.name for group in groups(FLEET.slos) for rule in group.rules}
    assert objective_groups(FLEET.slos)
    for spec in sloth.export(FLEET):
        for slo in spec["slos"]:
            for query in slo["sli"]["events"].values():
                assert "{{.window}}" in query
                for window in WINDOWS:
                    asked = {each.metric for each in selectors(read(query.replace("{{.window}}", window)))}
                    assert asked <= recorded


@settings(deadline=None, max_examples=50)
@given(fleets)
def test_every_model_has_a_specification_with_every_objective(fleet: Fleet) -> None:
    specs = sloth.export(replace(fleet, slos=replace(fleet.slos, window=timedelta(days=28))))
    services = [spec["service"] for spec in specs]
    assert len(set(services)) == len(services)
    for spec in specs:
        assert spec["version"] == "prometheus/v1"
        assert NAME.fullmatch(spec["service"])
        assert [slo["name"] for slo in spec["slos"]] == ["ttft", "itl", "availability", "goodput"]


def test_objectives_are_exact_percentages() -> None:
    text = documents.write(sloth.export(FLEET))
    assert "objective: 99.5\n" in text
    assert "objective: 95\n" in text


def test_a_model_of_any_name_is_asked_for_literally() -> None:
    spec = sloth.export(FLEET)[-1]
    query = spec["slos"][0]["sli"]["events"]["total_query"]
    assert query == 'model:llm_ttft_total:rate{{.window}}{model="qwen3-8b"}'


@pytest.mark.parametrize("days", [7, 29, 90])
def test_a_window_that_sloth_does_not_know_is_refused(days: int) -> None:
    slos = replace(FLEET.slos, window=timedelta(days=days))
    with pytest.raises(FleetError, match=rf"slos\.window: Sloth knows 28d and 30d, got {days}d; choose one of them"):
        sloth.export(replace(FLEET, slos=slos))
