"""Provisioning: what Grafana is told agrees with what the other parts do."""

from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from tests.dashboards.generated import BOARDS

ROOT = Path(__file__).parents[2]
PROVISIONING = ROOT / "dashboards" / "provisioning"


def read(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(path.read_text())
    return data


@pytest.fixture(scope="module")
def datasource() -> dict[str, Any]:
    [only] = read(PROVISIONING / "datasources" / "prometheus.yml")["datasources"]
    return dict(only)


@pytest.fixture(scope="module")
def provider() -> dict[str, Any]:
    [only] = read(PROVISIONING / "dashboards" / "servewatch.yml")["providers"]
    return dict(only)


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    return dict(read(ROOT / "compose.yaml")["services"])


def test_the_rate_interval_of_grafana_is_four_scrapes_of_prometheus(datasource: dict[str, Any]) -> None:
    prometheus = read(ROOT / "prometheus" / "generated" / "prometheus.yml")
    assert datasource["jsonData"]["timeInterval"] == prometheus["global"]["scrape_interval"]


def test_every_board_opens_on_the_datasource_that_is_provisioned(datasource: dict[str, Any]) -> None:
    for board in BOARDS.values():
        choice = board["templating"]["list"][0]
        assert (choice["type"], choice["query"]) == ("datasource", datasource["type"])
        assert choice["current"]["value"] == datasource["uid"]


def test_the_datasource_is_the_prometheus_of_compose(datasource: dict[str, Any], services: dict[str, Any]) -> None:
    host, _, port = datasource["url"].removeprefix("http://").partition(":")
    assert services[host]["image"].startswith("prom/prometheus:")
    assert any(str(published).endswith(f":{port}") for published in services[host]["ports"])


def test_grafana_reads_the_boards_where_compose_generates_them(
    provider: dict[str, Any], services: dict[str, Any]
) -> None:
    out = services["generate"]["command"][services["generate"]["command"].index("--out") + 1]
    assert PurePosixPath(provider["options"]["path"]) == PurePosixPath(out) / "dashboards" / "generated"
    assert f"generated:{out}:ro" in services["grafana"]["volumes"]


def test_grafana_reads_our_provisioning(services: dict[str, Any]) -> None:
    assert "./dashboards/provisioning:/etc/grafana/provisioning:ro" in services["grafana"]["volumes"]


def test_nobody_edits_a_board_in_the_browser_and_loses_it(provider: dict[str, Any]) -> None:
    assert provider["allowUiUpdates"] is False
    assert provider["folder"] == "Servewatch"


def test_the_home_board_of_compose_exists(services: dict[str, Any]) -> None:
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert PurePosixPath(home).stem in {board["uid"] for board in BOARDS.values()}
