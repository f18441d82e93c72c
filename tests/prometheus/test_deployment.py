"""Where people's browsers find the parts."""

from exporter.fleet import Links, load
from generate import artefacts
from prometheus.deployment import LOCAL, Deployment
from running.paths import ROOT


def test_links_of_the_fleet_file_replace_the_addresses_of_this_machine() -> None:
    reached = Deployment(addresses=LOCAL).reached_by(Links(boards="https://grafana.example")).addresses
    assert reached.boards == "https://grafana.example"
    assert reached.runbooks == LOCAL.runbooks
    assert reached.prometheus == LOCAL.prometheus


def test_without_grafana_nothing_links_to_boards() -> None:
    fleet = load(ROOT / "fleet.yml")
    linked = "".join(artefacts(fleet, Deployment(addresses=LOCAL)).values())
    assert "dashboard_url: " not in linked
    assert "/d/fleet)" not in linked
    assert "dashboard_url: http://127.0.0.1:3000/d/fleet" in "".join(artefacts(fleet, Deployment()).values())
