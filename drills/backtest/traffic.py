"""Traffic: requests of one model in one month, counted per step and member.

In: a profile, its incidents and chores, a random generator. Out: `Month`, arrays of counts per step of 10 s.

A model's replicas are held in two members, one replica and the rest added up: enough for restarts, lost scrapes and an
incident of one replica, at a fraction of the series.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from drills.backtest.incidents import DOWN, SHAPES, Chore, ChoreKind, Incident
from drills.backtest.profiles import MONTH, Profile, busyness

__all__ = ["STEP", "Counts", "Month", "bad", "draw", "total"]

STEP = 10
"""Seconds between two scrapes."""
_USUAL_BURN = 0.2
"""How much of its budget a healthy model spends."""
_USUAL = ("ttft", "itl", "availability")

Counts = NDArray[np.int64]
Shares = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """Events per step. Keys of `counts` are what is counted; each array has one row per member.

    `ready` is whether a member serves at the end of a step; `scraped` whether that was seen; `reset` whether its
    counters began anew within the step.
    """

    start: int
    counts: Mapping[str, Counts]
    ready: NDArray[np.bool_]
    scraped: NDArray[np.bool_]
    reset: NDArray[np.bool_]

    @property
    def times(self) -> NDArray[np.float64]:
        """Begin of each step, in seconds since the start of the backtest."""
        return self.start + np.arange(MONTH // STEP, dtype=np.float64) * STEP


def draw(
    profile: Profile,
    month: int,
    incidents: Sequence[Incident],
    chores: Iterable[Chore],
    random: np.random.Generator,
) -> Month:
    """Draw the requests of a month."""
    times = month * MONTH + np.arange(MONTH // STEP, dtype=np.float64) * STEP
    ready, scraped, reset = _members(times, incidents, chores)
    asked = _asked(profile, times, ready, random)
    shares = {slo: _shares(profile, slo, times, incidents, random) for slo in _USUAL}
    failed = random.binomial(asked, shares["availability"])
    rejected = np.where(_rejecting(times, incidents), failed, 0)
    answered = asked - failed
    counts = {
        "answered": answered,
        "error": failed - rejected,
        "rejected": rejected,
        "late": random.binomial(answered, shares["ttft"]),
        "slow": random.binomial(answered, shares["itl"]),
    }
    return Month(start=month * MONTH, counts=counts, ready=ready, scraped=scraped, reset=reset)


def total(counts: Mapping[str, Counts], slo: str) -> Counts:
    """Count the requests that an objective is about, over all members."""
    answered = counts["answered"].sum(axis=0)
    return _counts(answered if slo in ("ttft", "itl") else answered + bad(counts, "availability"))


def bad(counts: Mapping[str, Counts], slo: str) -> Counts:
    """Count the requests that missed an objective, over all members; for goodput at worst, as the rules have it."""
    late, slow, failed = (
        counts["late"].sum(axis=0),
        counts["slow"].sum(axis=0),
        (counts["error"] + counts["rejected"]).sum(axis=0),
    )
    if slo == "goodput":
        return _counts(np.minimum(late + slow + failed, total(counts, "availability")))
    return _counts({"ttft": late, "itl": slow, "availability": failed}[slo])


def _counts(found: object) -> Counts:
    return np.asarray(found, dtype=np.int64)


def _members(
    times: Shares, incidents: Iterable[Incident], chores: Iterable[Chore]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    shape = (2, len(times))
    ready, scraped, reset = np.ones(shape, bool), np.ones(shape, bool), np.zeros(shape, bool)
    for chore in chores:
        during = _during(times, chore.start, chore.duration)
        if chore.kind is ChoreKind.LOST_SCRAPES:
            scraped[chore.member] &= ~during
        else:
            ready[chore.member] &= ~during
            reset[chore.member, np.flatnonzero(during)[:1]] = True
    for incident in incidents:
        if incident.slo == DOWN:
            ready &= ~_during(times, incident.start, incident.duration)
    return ready, scraped, reset


def _during(times: Shares, start: float, duration: float) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (times + STEP > start) & (times < start + duration)
    return found


def _asked(profile: Profile, times: Shares, ready: NDArray[np.bool_], random: np.random.Generator) -> Counts:
    """Draw how many requests reach each member: those of a member that is away go to the other one."""
    hourly = np.exp(random.normal(0, 0.08, len(times) // (3600 // STEP)))
    rate = busyness(profile, times) * np.repeat(hourly, 3600 // STEP) * STEP
    one = np.where(ready[1], np.where(ready[0], 1 / profile.replicas, 0.0), 1.0)
    parts = np.stack([one, 1 - one]) * ready
    return _counts(random.poisson(rate * parts))


def _shares(
    profile: Profile, slo: str, times: Shares, incidents: Iterable[Incident], random: np.random.Generator
) -> Shares:
    """Return the share of bad requests per member: a usual one that wanders by the hour, and what incidents add."""
    hours = len(times) // (3600 // STEP)
    usual = _USUAL_BURN * profile.budget(slo) * np.exp(random.normal(-0.08, 0.4, hours))
    good = np.tile(1 - np.repeat(usual, 3600 // STEP), (2, 1))
    for incident in incidents:
        if incident.slo == slo:
            spared = 1 - incident.bad_share(times)
            good[0] *= spared
            if not SHAPES[incident.shape].one_replica:
                good[1] *= spared
    return 1 - good


def _rejecting(times: Shares, incidents: Iterable[Incident]) -> NDArray[np.bool_]:
    turned_away = np.zeros(len(times), bool)
    for incident in incidents:
        if incident.shape == "rejections":
            turned_away |= _during(times, incident.start, incident.duration)
    return turned_away
