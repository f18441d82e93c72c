"""Where people's browsers find the parts."""

from exporter.fleet import Links
from prometheus.deployment import LOCAL, Deployment


def test_links_of_the_fleet_file_replace_the_addresses_of_this_machine() -> None:
    reached = Deployment(addresses=LOCAL).reached_by(Links(boards="https://grafana.example")).addresses
    assert reached.boards == "https://grafana.example"
    assert reached.runbooks == LOCAL.runbooks
    assert reached.prometheus == LOCAL.prometheus
