"""Deployment: where the parts of the product find each other, and how fast its clock runs.

Data only. In: nothing. Out: `Deployment`, for everything that writes an address or a duration into a configuration.
"""

from dataclasses import asdict, dataclass, field, replace

from exporter.fleet import Links
from prometheus.windows import TimeScale

__all__ = ["COMPOSE", "LOCAL", "Addresses", "Deployment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """host:port of the parts as they see each other; the last two are base addresses for people's browsers.

    Without Grafana there are no `boards`, and nothing links to them.
    """

    exporter: str
    prometheus: str
    alertmanager: str
    phone: str
    runbooks: str
    boards: str | None = None


COMPOSE = Addresses(
    exporter="exporter:9801",
    prometheus="prometheus:9090",
    alertmanager="alertmanager:9093",
    phone="phone:9803",
    boards="http://127.0.0.1:3000",
    runbooks="http://127.0.0.1:9801/runbooks",
)
"""Containers that call each other by name."""

LOCAL = Addresses(
    exporter="127.0.0.1:9801",
    prometheus="127.0.0.1:9090",
    alertmanager="127.0.0.1:9093",
    phone="127.0.0.1:9803",
    runbooks="http://127.0.0.1:9801/runbooks",
)
"""Processes on one machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Where and how fast the product runs; `fleet_directory` is where Prometheus finds what lies beside fleet.yml."""

    addresses: Addresses = COMPOSE
    fleet_directory: str = "/etc/servewatch"
    scale: TimeScale = field(default_factory=TimeScale)

    def reached_by(self, links: Links) -> "Deployment":
        """Return the same deployment with the addresses that fleet.yml gives for people's browsers."""
        given = {key: value for key, value in asdict(links).items() if value}
        return replace(self, addresses=replace(self.addresses, **given))
