"""The `slos` part of fleet.yml -> objectives per model. Shares are decimals end to end."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal

from exporter.document import Node

__all__ = ["LEAST", "LatencyObjective", "Objectives", "RatioObjective", "Slos", "slos"]

LEAST = Decimal("0.1")
"""Nobody promises that most requests fail: a smaller objective is a share with a % behind it, or an error budget."""
_LIKELY = range(90, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyObjective:
    """`objective` (a share, 0 to 1) of the requests stay within `threshold`."""

    threshold: timedelta
    objective: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioObjective:
    """`objective` (a share, 0 to 1) of the requests are good."""

    objective: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Objectives:
    """What users of one model are promised. `itl` is about a request's mean gap between tokens (TPOT)."""

    ttft: LatencyObjective = LatencyObjective(threshold=timedelta(seconds=2), objective=Decimal("0.95"))
    itl: LatencyObjective = LatencyObjective(threshold=timedelta(milliseconds=100), objective=Decimal("0.95"))
    availability: RatioObjective = RatioObjective(objective=Decimal("0.995"))
    goodput: RatioObjective = RatioObjective(objective=Decimal("0.9"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Slos:
    """Objectives of the fleet over `window`: `default`, and the models that differ from it."""

    window: timedelta = timedelta(days=30)
    default: Objectives = Objectives()
    models: Mapping[str, Objectives] = field(default_factory=dict)

    def of(self, model: str) -> Objectives:
        """Return the objectives of a model, known here or not."""
        return self.models.get(model, self.default)


def _objectives(node: Node, base: Objectives) -> Objectives:
    """Read one model's objectives; what is not said stays as in `base`."""
    parts = node.mapping(optional=("ttft", "itl", "availability", "goodput"))
    return Objectives(
        ttft=_latency(parts["ttft"], base.ttft) if "ttft" in parts else base.ttft,
        itl=_latency(parts["itl"], base.itl) if "itl" in parts else base.itl,
        availability=_ratio(parts["availability"]) if "availability" in parts else base.availability,
        goodput=_ratio(parts["goodput"]) if "goodput" in parts else base.goodput,
    )


def _latency(node: Node, base: LatencyObjective) -> LatencyObjective:
    parts = node.mapping(optional=("threshold", "objective"))
    return LatencyObjective(
        threshold=parts["threshold"].duration() if "threshold" in parts else base.threshold,
        objective=_share(parts["objective"]) if "objective" in parts else base.objective,
    )


def _ratio(node: Node) -> RatioObjective:
    return RatioObjective(objective=_share(node.mapping(required=("objective",))["objective"]))


def _share(node: Node) -> Decimal:
    share = node.share()
    if share < LEAST:
        node.refuse(f"the share of good requests, 10% or more (did you mean {_meant(share)}?)")
    return share


def _meant(share: Decimal) -> str:
    """Guess what somebody promises who wrote 0.99% (0.99), 9.9% (99%) or 1% (as error budget)."""
    guesses = (share * 10_000, share * 1_000, 100 - share * 100)
    return f"{next((guess for guess in guesses if int(guess) in _LIKELY), Decimal(99)).normalize():f}%"


def slos(node: Node) -> Slos:
    """Read the `slos` section."""
    parts = node.mapping(optional=("window", "default", "models"))
    default = _objectives(parts["default"], Objectives()) if "default" in parts else Objectives()
    models = parts["models"].entries("a mapping from model to objectives") if "models" in parts else {}
    window = parts["window"].duration() if "window" in parts else Slos().window
    if window < timedelta(days=1):
        parts["window"].refuse("a window of at least 1d")
    return Slos(window=window, default=default, models={m: _objectives(n, default) for m, n in models.items()})
