"""Profiles: the five models of the backtest. Data, and how busy a model is at a moment.

In: nothing. Out: `PROFILES`, and the fleet of one model as rules are generated for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from exporter.fleet import Fleet, Replica
from exporter.objectives import LatencyObjective, Objectives, RatioObjective, Slos

__all__ = ["DAY", "MONTH", "PROFILES", "SLOS", "Profile", "busyness"]

Seconds = NDArray[np.float64]

DAY = 86_400
MONTH = 30 * DAY
SLOS = ("ttft", "itl", "availability", "goodput")
_QUIETEST_HOUR = 4
_WORKING_DAYS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A model: what its users are promised, and how many of them there are.

    `peak` is requests per second at the busiest hour; `night` and `weekend` are shares of it. `replicas` share the
    load.
    """

    model: str
    objectives: Objectives
    peak: float
    night: float
    weekend: float
    replicas: int

    def objective(self, slo: str) -> Decimal:
        """Return the share of requests promised to be good."""
        found: LatencyObjective | RatioObjective = getattr(self.objectives, slo)
        return found.objective

    def budget(self, slo: str) -> float:
        """Return the share of requests that may be bad."""
        return float(1 - self.objective(slo))

    @property
    def fleet(self) -> Fleet:
        """A fleet of this model alone: models do not share rules' results, so each can be judged by itself."""
        replicas = (Replica(name="a", url="http://a", model=self.model), Replica(name="b", url="http://b"))
        return Fleet(replicas=replicas, slos=Slos(default=self.objectives))


def _objectives(ttft: str, itl: str, availability: str, goodput: str) -> Objectives:
    return Objectives(
        ttft=LatencyObjective(threshold=timedelta(seconds=2), objective=Decimal(ttft)),
        itl=LatencyObjective(threshold=timedelta(milliseconds=100), objective=Decimal(itl)),
        availability=RatioObjective(objective=Decimal(availability)),
        goodput=RatioObjective(objective=Decimal(goodput)),
    )


def _profile(model: str, objectives: Objectives, load: tuple[float, float, float], replicas: int) -> Profile:
    peak, night, weekend = load
    return Profile(model=model, objectives=objectives, peak=peak, night=night, weekend=weekend, replicas=replicas)


PROFILES: Mapping[str, Profile] = {
    profile.model: profile
    for profile in (
        _profile("api-70b", _objectives("0.999", "0.999", "0.999", "0.997"), (40.0, 0.4, 0.8), 8),
        _profile("chat-8b", _objectives("0.99", "0.99", "0.999", "0.98"), (20.0, 0.25, 0.9), 4),
        _profile("code-14b", _objectives("0.98", "0.95", "0.995", "0.93"), (6.0, 0.15, 0.4), 3),
        _profile("batch-32b", _objectives("0.95", "0.9", "0.99", "0.9"), (2.0, 0.6, 1.0), 2),
        _profile("lab-3b", _objectives("0.9", "0.9", "0.95", "0.9"), (0.03, 0.1, 0.3), 2),
    )
}
"""From a busy interface with three nines to a quiet model that a few people try: 72 requests an hour at most."""


def busyness(profile: Profile, at: Seconds) -> Seconds:
    """Return requests per second at moments in seconds since a Monday, 00:00."""
    hour = at / 3600 % 24
    day = profile.night + (1 - profile.night) * (0.5 - 0.5 * np.cos(2 * np.pi * (hour - _QUIETEST_HOUR) / 24))
    week = np.where(at // DAY % 7 < _WORKING_DAYS, 1.0, profile.weekend)
    return profile.peak * day * week
