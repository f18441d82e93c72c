"""Every board as it is generated: what Grafana needs, and what the person who opens it needs."""

import json
import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest
import yaml

import alerts.render
from exporter.fleet import load
from prometheus.deployment import Deployment
from tests.dashboards.generated import BOARDS, ROOT, artefacts, panels
from tests.dashboards.oracle import Dashboard, disagreements

Json = dict[str, Any]

every_board = pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)


def everything(value: object) -> Iterator[tuple[str, object]]:
    """Yield every key and value below a JSON value."""
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield str(key), part
        yield from everything(part)


def test_rendering_twice_gives_the_same_bytes() -> None:
    assert artefacts() == artefacts()


def test_the_fleet_board_is_there() -> None:
    assert "dashboards/generated/fleet.json" in BOARDS


def test_no_two_boards_share_a_uid_or_a_title() -> None:
    for key in ("uid", "title"):
        values = [board[key] for board in BOARDS.values()]
        assert len(set(values)) == len(values)


@pytest.mark.parametrize(("path", "board"), BOARDS.items(), ids=BOARDS)
def test_the_uid_is_the_name_of_the_file_and_short_enough(path: str, board: Json) -> None:
    assert path == f"dashboards/generated/{board['uid']}.json"
    assert len(board["uid"]) <= 40
    assert board["id"] is None


@every_board
def test_grafana_reads_every_key_of_the_board_as_meant(board: Json) -> None:
    assert disagreements(board, Dashboard) == []


@every_board
def test_time_is_the_viewers_and_refresh_is_gentle(board: Json) -> None:
    assert board["timezone"] == "browser"
    assert board["schemaVersion"] == 42
    assert int(board["refresh"].removesuffix("s")) >= 30


@every_board
def test_ids_are_unique_and_panels_do_not_overlap(board: Json) -> None:
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    cells = [
        {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        for place in (panel["gridPos"] for panel in board["panels"])
    ]
    assert not [pair for pair in combinations(cells, 2) if pair[0] & pair[1]]
    assert max(x for taken in cells for x, _ in taken) < 24


@every_board
def test_the_datasource_is_the_variable_everywhere(board: Json) -> None:
    text = json.dumps(board)
    assert "${DS_" not in text
    sources = [value for key, value in everything(board) if key == "datasource"]
    assert sources
    assert all(source == {"type": "prometheus", "uid": "${datasource}"} for source in sources)


@every_board
def test_no_value_is_the_word_null(board: Json) -> None:
    assert not [key for key, value in everything(board) if value == "null"]


@every_board
def test_every_panel_has_a_title_a_description_a_unit_and_words_for_nothing(board: Json) -> None:
    titles = [panel["title"] for panel in panels(board)]
    assert len(set(titles)) == len(titles)
    for panel in panels(board):
        defaults = panel["fieldConfig"]["defaults"]
        assert len(panel["description"]) > 20, panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert defaults["unit"], panel["title"]
        assert " " in defaults["noValue"], panel["title"]
        assert isinstance(defaults["thresholds"]["steps"], list), panel["title"]


@every_board
def test_every_query_has_a_ref_of_its_own_within_its_panel(board: Json) -> None:
    for panel in panels(board):
        refs = [target["refId"] for target in panel["targets"]]
        assert all(refs), panel["title"]
        assert len(set(refs)) == len(refs), panel["title"]


@every_board
def test_all_means_every_value_even_when_nothing_lives(board: Json) -> None:
    for variable in board["templating"]["list"][1:]:
        assert variable["includeAll"] is True
        assert variable["allValue"] == ".*"
        assert variable["current"]["value"] == ["$__all"]


@every_board
def test_every_variable_of_a_query_exists(board: Json) -> None:
    known = {variable["name"] for variable in board["templating"]["list"]}
    for _, value in everything(board):
        for name in re.findall(r"\$\{?(\w+)", value) if isinstance(value, str) else ():
            assert name in known or name.startswith("__"), value


@every_board
def test_links_lead_to_boards_that_exist_and_encode_what_they_carry(board: Json) -> None:
    uids = {other["uid"] for other in BOARDS.values()}
    for url in (value for key, value in everything(board) if key == "url" and value):
        assert isinstance(url, str)
        if target := re.match(r"/d/([^?/]+)", url):
            assert target[1] in uids, url
        for variable in re.findall(r"\$\{(__data[^}]*)\}", url):
            assert variable.endswith(":percentencode"), url


def test_the_board_and_the_page_on_the_phone_link_to_the_same_runbook() -> None:
    rules = [
        rule
        for path, text in alerts.render.artefacts(load(ROOT / "fleet.yml"), Deployment()).items()
        if path.startswith("alerts/generated/rules/")
        for group in yaml.safe_load(text)["groups"]
        for rule in group["rules"]
        if "alert" in rule
    ]
    fleet = BOARDS["dashboards/generated/fleet.json"]
    [link] = [value for key, value in everything(fleet) if key == "url" and "alertname" in str(value)]
    for rule in rules:
        opened = str(link).replace("${__data.fields.alertname:percentencode}", rule["alert"])
        assert opened == rule["annotations"]["runbook_url"]
