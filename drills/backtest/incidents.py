"""Incidents: what goes wrong with a model in a month, drawn from a seed.

In: a profile, a random generator. Out: `Incident` objects, apart from each other, and `Chore` objects (restarts,
rollouts, lost scrapes), which are no incidents and must not page.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from drills.backtest.profiles import DAY, MONTH, Profile

__all__ = ["DOWN", "SHAPES", "Chore", "ChoreKind", "Incident", "Shape", "chores", "incidents"]

Curve = Callable[[NDArray[np.float64], float, float], NDArray[np.float64]]
"""Seconds since the start, duration, period -> share of the incident's size, 0 to 1."""

DOWN = "down"
"""Stands where an indicator would, if nobody answers at all."""
_MINUTE, _HOUR = 60.0, 3600.0
_APART = 8 * _HOUR
_EVERY = 5 * DAY
"""Mean time between two incidents of a model."""


def _steady(x: NDArray[np.float64], _duration: float, _period: float) -> NDArray[np.float64]:
    return np.ones_like(x)


def _ramp(x: NDArray[np.float64], duration: float, _period: float) -> NDArray[np.float64]:
    return x / duration


def _spikes(x: NDArray[np.float64], _duration: float, period: float) -> NDArray[np.float64]:
    return (x % period < period / 8).astype(np.float64)


def _flapping(x: NDArray[np.float64], _duration: float, period: float) -> NDArray[np.float64]:
    return (x % period < period / 2).astype(np.float64)


def _burst_and_tail(x: NDArray[np.float64], duration: float, _period: float) -> NDArray[np.float64]:
    return np.where(x < duration / 12, 1.0, 0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A kind of incident. `spend` is the range of the budget's share it aims at; None is everything bad.

    Ranges are drawn from evenly on a logarithmic scale. `weight` is how often it happens beside the others.
    """

    name: str
    slos: tuple[str, ...]
    seconds: tuple[float, float]
    spend: tuple[float, float] | None
    curve: Curve = _steady
    one_replica: bool = False
    weight: float = 1.0


_LATENCY = ("ttft", "itl")
_ANY = (*_LATENCY, "availability")

SHAPES: Mapping[str, Shape] = {
    shape.name: shape
    for shape in (
        Shape(name="sudden total", slos=_ANY, seconds=(3 * _MINUTE, 40 * _MINUTE), spend=None, weight=1.5),
        Shape(name="blip", slos=_ANY, seconds=(10, 60), spend=None),
        Shape(name="sudden partial", slos=("availability",), seconds=(5 * _MINUTE, 5 * _HOUR), spend=(0.003, 0.2)),
        Shape(name="rejections", slos=("availability",), seconds=(5 * _MINUTE, 3 * _HOUR), spend=(0.003, 0.2)),
        Shape(name="slow first token", slos=("ttft",), seconds=(5 * _MINUTE, 5 * _HOUR), spend=(0.003, 0.2)),
        Shape(name="slow tokens", slos=("itl",), seconds=(5 * _MINUTE, 5 * _HOUR), spend=(0.003, 0.2)),
        Shape(name="slow ramp", slos=_ANY, seconds=(_HOUR, 8 * _HOUR), spend=(0.01, 0.3), curve=_ramp),
        Shape(name="short spikes", slos=_ANY, seconds=(_HOUR, 5 * _HOUR), spend=(0.005, 0.1), curve=_spikes),
        Shape(name="flapping", slos=_ANY, seconds=(_HOUR / 2, 4 * _HOUR), spend=(0.01, 0.15), curve=_flapping),
        Shape(name="burst and tail", slos=_ANY, seconds=(_HOUR, 4 * _HOUR), spend=(0.01, 0.15), curve=_burst_and_tail),
        Shape(name="one replica of many", slos=_ANY, seconds=(10 * _MINUTE, 6 * _HOUR), spend=None, one_replica=True),
        Shape(name="slow burn", slos=_ANY, seconds=(DAY, 3 * DAY), spend=(0.03, 0.3)),
        Shape(name="model down", slos=(DOWN,), seconds=(2 * _MINUTE, 30 * _MINUTE), spend=None),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One incident of a model, in seconds since the start of the backtest. `size` is the largest share of bad requests.

    `period` is that of spikes and flapping, in seconds.
    """

    model: str
    shape: str
    slo: str
    start: float
    duration: float
    size: float
    period: float

    @property
    def end(self) -> float:
        """When it is over."""
        return self.start + self.duration

    def bad_share(self, at: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of requests it spoils at each moment."""
        inside = (at >= self.start) & (at < self.end)
        curve = SHAPES[self.shape].curve(at - self.start, self.duration, self.period)
        return np.where(inside, self.size * curve, 0.0)


class ChoreKind(Enum):
    """What happens to healthy fleets all the time."""

    RESTART = "restart of a replica: counters begin at 0 again"
    LOST_SCRAPES = "scrapes of a replica that failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chore:
    """Something ordinary that happens to member 0 or 1 of a model."""

    kind: ChoreKind
    member: int
    start: float
    duration: float


def incidents(profile: Profile, month: int, random: np.random.Generator) -> tuple[Incident, ...]:
    """Draw the incidents of a month; each ends within it, hours after the one before."""
    found: list[Incident] = []
    end = (month + 1) * MONTH - _APART
    free = month * MONTH + _APART
    while True:
        drawn = incident(profile, _shape(random), free + random.exponential(_EVERY), random)
        if drawn.end > end:
            return tuple(found)
        found.append(drawn)
        free = drawn.end + _APART


def _shape(random: np.random.Generator) -> Shape:
    shapes = list(SHAPES.values())
    weights = np.array([shape.weight for shape in shapes])
    return shapes[int(random.choice(len(shapes), p=weights / weights.sum()))]


def incident(profile: Profile, shape: Shape, start: float, random: np.random.Generator) -> Incident:
    """Draw one incident of a shape."""
    slo = str(random.choice(shape.slos))
    duration = _between(*shape.seconds, random)
    period = _between(4 * _MINUTE, 20 * _MINUTE, random)
    spend = _between(*shape.spend, random) if shape.spend else None
    return Incident(
        model=profile.model,
        shape=shape.name,
        slo=slo,
        start=start,
        duration=duration,
        size=1.0 if spend is None else _size(profile.budget(slo), shape, spend, duration),
        period=period,
    )


def _size(budget: float, shape: Shape, spend: float, duration: float) -> float:
    """Return the share of bad requests that spends a share of the budget at even traffic; at most every request."""
    moments = np.linspace(0, duration, 2000, endpoint=False)
    mean = float(shape.curve(moments, duration, 10 * _MINUTE).mean())
    return float(min(1.0, spend * MONTH / duration * budget / mean))


def _between(low: float, high: float, random: np.random.Generator) -> float:
    return float(np.exp(random.uniform(np.log(low), np.log(high))))


def chores(month: int, random: np.random.Generator) -> tuple[Chore, ...]:
    """Draw restarts, a weekly rollout of both members in turn, and scrapes that failed."""
    begin = month * MONTH
    restarts = [_chore(ChoreKind.RESTART, begin, (30, 120), random) for _ in range(random.poisson(4))]
    lost = [_chore(ChoreKind.LOST_SCRAPES, begin, (10, 90), random) for _ in range(random.poisson(12))]
    rollouts = [
        Chore(kind=ChoreKind.RESTART, member=member, start=at + member * 180, duration=90)
        for day in range(int(random.integers(7)), 30, 7)
        for at in [begin + day * DAY + random.uniform(8, 18) * _HOUR]
        for member in (0, 1)
    ]
    return tuple(sorted([*restarts, *lost, *rollouts], key=lambda chore: chore.start))


def _chore(kind: ChoreKind, begin: float, lasts: tuple[float, float], random: np.random.Generator) -> Chore:
    at = begin + random.uniform(0, MONTH)
    return Chore(kind=kind, member=int(random.integers(2)), start=at, duration=_between(*lasts, random))
