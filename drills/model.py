"""What a drill is: the fault, what must page and by when, what must stay quiet. Data, and nothing that runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

__all__ = ["CardFault", "Drill", "Expected", "Fault", "ProcessFault"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault of the simulator on one replica, with its parameters."""

    replica: str
    name: str
    parameters: Mapping[str, str | float] = field(default_factory=dict)

    def __str__(self) -> str:
        """Answer it as a person would say it: `kill vllm-a`."""
        settings = "".join(f" {key}={value}" for key, value in self.parameters.items())
        return f"{self.name} {self.replica}{settings}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFault:
    """What the fake driver says of one card instead of what it says of a healthy one."""

    card: int
    says: Mapping[str, object]

    def __str__(self) -> str:
        """Answer it as a person would say it: `card 0 all=!15`."""
        return f"card {self.card} {' '.join(f'{key}={value}' for key, value in self.says.items())}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFault:
    """A part of the product that dies and is started again, named as in the Procfile."""

    process: str

    def __str__(self) -> str:
        """Answer it as a person would say it: `kill exporter`."""
        return f"kill {self.process}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A page that must arrive, or a ticket. `within` is real time: the time scale of a run divides it.

    `model` is empty where the alert is about no model. A part that has to start again, or a request that has to end,
    does so at its own pace: `own_pace` are seconds that no time scale divides.
    """

    alertname: str
    model: str
    within: timedelta
    receiver: str = "page"
    own_pace: timedelta = timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    """One drill. Every page that is not `page` fails it; `bad_sample` is a query that answers once the fault shows.

    Where a ticket is expected, no page may come, and no other ticket. `cards` of the replicas have a card each, which
    the fake driver tells of. `load` multiplies the demo's traffic, and `promised` changes its objectives (`ttft: 99%`),
    so that exactly one thing breaks. `time_scale` is how fast the drill runs unless its runner says otherwise: the more
    requests a rule wants to see, the slower.
    """

    name: str
    summary: str
    faults: tuple[Fault | CardFault | ProcessFault, ...]
    bad_sample: str
    page: Expected
    cards: int = 0
    load: float = 1.0
    promised: Mapping[str, str] = field(default_factory=dict)
    time_scale: int = 10
