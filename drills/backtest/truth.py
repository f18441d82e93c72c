"""Truth: what an incident spends of each error budget, and so what has to happen.

In: months of counts and their incidents. Out: `Verdict` per incident.

    spent     bad requests within the incident / (share that may be bad * requests of the 30 days before it)

In the first month, what was seen so far stands for the 30 days.

must page      2 % of a 30-day budget within an hour, or 5 % within six: before half as much again is spent
must ticket    10 % within three days: a ticket, or a page
collapse       half of the requests or more miss an objective, or nobody answers: a page is right. Two minutes tell, or
               an hour where requests are rare
may be quiet   everything else

Nobody can be told before it is known: where half as much again is spent sooner than the time in which a page has to
come when every request is bad, that time counts (`SOONEST`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from drills.backtest.incidents import DOWN, Incident
from drills.backtest.profiles import DAY, MONTH, SLOS, Profile
from drills.backtest.traffic import STEP, Month, bad, total

__all__ = ["EVERYTHING_BAD", "MODEL_DOWN", "SOONEST", "History", "Spent", "Verdict"]

MODEL_DOWN = 60.0
"""Seconds within which a model that is down has to page."""
EVERYTHING_BAD = 180.0
"""Seconds within which a page has to come when every request is bad."""
SOONEST = EVERYTHING_BAD
_PAGES = ((3600, 0.02), (6 * 3600, 0.05))
_TICKET = (3 * DAY, 0.1)
_HALF_AGAIN = 1.5
_COLLAPSE_STEPS = (120 // STEP, 3600 // STEP)
_MONTH_STEPS = MONTH // STEP
_ENOUGH = 20
"""Requests below which a share is no collapse."""

Counts = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What an incident spent of one budget: running sum per step from its start, a share of the 30-day budget."""

    start: float
    running: Counts

    @property
    def whole(self) -> float:
        """What it spent until it was over."""
        return float(self.running[-1])

    def until(self, moment: float) -> float:
        """Return what was spent by a moment."""
        step = int((moment - self.start) // STEP)
        return 0.0 if step < 0 else float(self.running[min(step, len(self.running) - 1)])

    def reached(self, seconds: int, share: float) -> float | None:
        """Return when a share was first spent within a span of time, or None."""
        steps = seconds // STEP
        before = np.concatenate([np.zeros(min(steps, len(self.running))), self.running[:-steps]])
        first = np.flatnonzero(self.running - before >= share)
        return None if not len(first) else self.start + (float(first[0]) + 1) * STEP


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What has to happen about an incident. `deadline` is when a page is late, None if it need not page."""

    incident: Incident
    spent: dict[str, Spent]
    deadline: float | None
    must_ticket: bool
    collapse: bool
    everything_bad: bool

    @property
    def must_page(self) -> bool:
        """Whether silence would be a fault."""
        return self.deadline is not None

    @property
    def may_page(self) -> bool:
        """Whether a page is right."""
        return self.must_page or self.collapse

    @property
    def reached(self) -> float | None:
        """When so much of a budget was first spent that somebody has to be paged; None if that never happens."""
        found = (spent.reached(*page) for spent in self.spent.values() for page in _PAGES)
        return min((moment for moment in found if moment is not None), default=None)

    def worst(self, moment: float) -> float:
        """Return what was spent by a moment, of the budget that suffers most."""
        return max((spent.until(moment) for spent in self.spent.values()), default=0.0)


class History:
    """The requests of the months so far, of one model."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._asked: dict[str, Counts] = {}

    def verdicts(self, month: Month, incidents: Sequence[Incident]) -> tuple[Verdict, ...]:
        """Judge the incidents of the next month."""
        for slo in SLOS:
            of_month = total(month.counts, slo).astype(np.float64)
            self._asked[slo] = np.concatenate([self._asked.get(slo, of_month[:0])[-_MONTH_STEPS:], of_month])
        return tuple(_verdict(incident, month, self._allowed(incident, month)) for incident in incidents)

    def _allowed(self, incident: Incident, month: Month) -> Mapping[str, float]:
        """Return how many requests each budget of 30 days has, when the incident begins."""
        left = _MONTH_STEPS - int((incident.start - month.start) // STEP)
        return {
            slo: self._profile.budget(slo) * float(asked[:-left][-_MONTH_STEPS:].mean()) * _MONTH_STEPS
            for slo, asked in self._asked.items()
        }


def _verdict(incident: Incident, month: Month, allowed: Mapping[str, float]) -> Verdict:
    first = int((incident.start - month.start) // STEP)
    last = max(first + 1, int(np.ceil((incident.end - month.start) / STEP)))
    during = {name: counts[:, first:last] for name, counts in month.counts.items()}
    start = month.start + first * STEP
    spent = {slo: Spent(start=start, running=np.cumsum(bad(during, slo)) / allowed[slo]) for slo in SLOS}
    down = incident.slo == DOWN
    shares = [
        _worst_share(bad(during, slo), total(during, slo), steps)
        for slo in SLOS
        for steps in (_COLLAPSE_STEPS if not down else ())
    ]
    deadlines = [found for each in spent.values() if (found := _deadline(each, incident)) is not None]
    return Verdict(
        incident=incident,
        spent=spent,
        deadline=incident.start + MODEL_DOWN if down else min(deadlines, default=None),
        must_ticket=any(each.reached(*_TICKET) is not None for each in spent.values()),
        collapse=down or max(shares, default=0.0) >= 0.5,  # noqa: PLR2004 - half
        everything_bad=incident.shape == "sudden total" and max(shares, default=0.0) > 0.9,  # noqa: PLR2004 - nearly all
    )


def _deadline(spent: Spent, incident: Incident) -> float | None:
    """Return when half as much again is spent of what must page; the incident's end if that never happens."""
    found = []
    for seconds, share in _PAGES:
        if (reached := spent.reached(seconds, share)) is not None:
            late = spent.reached(seconds, share * _HALF_AGAIN)
            found.append((reached, max(late or np.inf, incident.start + SOONEST)))
    return min(found)[1] if found else None


def _worst_share(bad_ones: NDArray[np.int64], of: NDArray[np.int64], steps: int) -> float:
    """Return the largest share of bad requests within some steps that had enough of them."""
    window = np.ones(steps)
    if len(of) < steps:
        return 0.0
    asked, missed = np.convolve(of, window, "valid"), np.convolve(bad_ones, window, "valid")
    enough = asked >= _ENOUGH
    return float((missed[enough] / asked[enough]).max(initial=0.0))
