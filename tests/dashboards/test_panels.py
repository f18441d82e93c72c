"""Panels: grafanalib's mistakes do not reach Grafana."""

from typing import Any

import pytest

from dashboards.fields import GREEN, NO_TRAFFIC, RED, Column, Look, dashed, link, steps
from dashboards.panels import Panel, Query, Stat, StateTimeline, Table, Timeseries
from tests.dashboards.oracle import Panel as SchemaPanel
from tests.dashboards.oracle import disagreements

LOOK = Look(unit="s", empty=NO_TRAFFIC, base=GREEN, colours=[(2, RED)], words={0: ("none", GREEN)})
TWO = [Query(expr="up"), Query(expr="up == 1", legend="{{model}}")]
SAID: dict[str, Any] = {"title": "TTFT", "description": "Time to first token."}
MODEL = Column(source="model", title="Model", look=Look(unit="string", empty="unknown"), width=160)

PANELS: dict[str, Panel] = {
    "lines": Timeseries(**SAID, look=LOOK, queries=TWO, maximum=1, overrides=[dashed("B", RED)]),
    "a stack": Timeseries(**SAID, look=LOOK, queries=TWO, stacked=True),
    "a stat": Stat(**SAID, look=LOOK, queries=TWO),
    "a table": Table(**SAID, empty="no model", queries=TWO, columns=[MODEL], join_by="model", sort_by="Model"),
    "a timeline": StateTimeline(**SAID, empty="no replica", states={1: ("ready", GREEN)}, queries=TWO),
}


def defaults(panel: Panel) -> dict[str, Any]:
    found: dict[str, Any] = panel.json()["fieldConfig"]["defaults"]
    return found


@pytest.mark.parametrize("panel", PANELS.values(), ids=PANELS)
def test_grafana_reads_every_key_of_a_panel_as_meant(panel: Panel) -> None:
    assert disagreements(panel.json(), SchemaPanel) == []


def test_the_oracle_refuses_the_shapes_that_grafanalib_writes_for_a_stat() -> None:
    panel = {**PANELS["a stat"].json(), "editable": True, "maxDataPoints": "100"}
    panel["fieldConfig"]["defaults"]["thresholds"]["steps"] = ""
    panel["options"]["graphMode"] = "nothing"
    found = "\n".join(disagreements(panel, SchemaPanel))
    assert ".editable: Grafana knows no such key" in found
    assert ".fieldConfig.defaults.thresholds.steps: '' comes back as []" in found
    assert ".max_data_points: '100' is not" in found
    assert "graph_mode: 'nothing' is not" in found


@pytest.mark.parametrize("panel", PANELS.values(), ids=PANELS)
def test_each_query_has_a_ref_of_its_own_and_the_datasource_of_the_board(panel: Panel) -> None:
    targets = panel.json()["targets"]
    assert [target["refId"] for target in targets] == ["A", "B"]
    assert all(target["datasource"] == {"type": "prometheus", "uid": "${datasource}"} for target in targets)


@pytest.mark.parametrize("panel", PANELS.values(), ids=PANELS)
def test_nothing_to_show_is_said_in_words(panel: Panel) -> None:
    shown = defaults(panel)
    assert shown["noValue"].startswith("no ")
    assert shown["mappings"][0]["options"]["match"] == "null+nan"
    assert shown["mappings"][0]["options"]["result"]["text"] == shown["noValue"]


def test_a_stat_shows_the_last_value_not_the_mean() -> None:
    panel = PANELS["a stat"].json()
    assert panel["options"]["reduceOptions"]["calcs"] == ["lastNotNull"]
    assert "maxDataPoints" not in panel
    assert all("intervalFactor" not in target for target in panel["targets"])


def test_a_gap_stays_a_gap() -> None:
    assert defaults(PANELS["lines"])["custom"]["spanNulls"] is False
    assert defaults(PANELS["a timeline"])["custom"]["spanNulls"] is False


def test_thresholds_are_a_list_from_minus_infinity_upwards() -> None:
    assert steps(GREEN, [(2, RED)]) == [{"color": GREEN, "value": None}, {"color": RED, "value": 2}]
    with pytest.raises(ValueError, match="must ascend"):
        steps(GREEN, [(2, RED), (1, RED)])


@pytest.mark.parametrize("missing", ["title", "description"])
def test_a_panel_without_title_or_description_is_refused(missing: str) -> None:
    said = {**SAID, missing: ""}
    with pytest.raises(ValueError, match="needs a title, a description"):
        Stat(**said, look=LOOK, queries=TWO).json()


def test_a_panel_wider_than_the_grid_is_refused() -> None:
    with pytest.raises(ValueError, match="width of 1 to 24, got 25x4"):
        Stat(**SAID, look=LOOK, queries=TWO, width=25).json()


def test_a_label_goes_into_a_link_encoded_only() -> None:
    assert link("this model", "/d/fleet?var-model=${__data.fields.model:percentencode}")["targetBlank"] is False
    with pytest.raises(ValueError, match="unencoded"):
        link("this model", "/d/fleet?var-model=${__data.fields.model}")


def test_a_table_keeps_its_columns_in_order_under_their_titles() -> None:
    join, keep, order = PANELS["a table"].json()["transformations"]
    assert join == {"id": "joinByField", "options": {"byField": "model", "mode": "outer"}}
    assert keep["options"]["include"]["names"] == ["model"]
    assert order["options"]["renameByName"] == {"model": "Model"}
