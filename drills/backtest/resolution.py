"""Resolution: where every sample is kept, and where one a minute is enough.

In: incidents and chores. Out: `Stretch` objects that cover a span of time without gaps.

Exact: from 10 minutes before an incident until 70 minutes after its start, and from 10 minutes before its end until
30 minutes after it; 10 minutes around every chore. There every scrape is kept and every rule is evaluated each 10 s.
Thinned: everything else has a scrape a minute and an evaluation every 100 s. Rates of counters are the same but for
rounding; an alert that comes and goes between two evaluations in quiet, or hours into an incident, is not seen.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from drills.backtest.incidents import Chore, Incident
from drills.backtest.traffic import STEP

__all__ = ["SPARSE", "Stretch", "kept", "stretches"]

SPARSE = 60
"""Seconds between two samples where nothing happens."""
_TILE = 300
_AROUND = 600
_FIRST = 4200
_AFTER = 1800


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A span of time, in whole tiles of five minutes; `exact` if every sample counts."""

    start: int
    end: int
    exact: bool


def stretches(start: int, end: int, incidents: Iterable[Incident], chores: Iterable[Chore]) -> tuple[Stretch, ...]:
    """Cover a span with exact and thinned stretches, in order."""
    found = []
    at = start
    for begin, over in _merged(_exact(incidents, chores)):
        begin, over = max(_tile(begin), start), min(_tile(over) + _TILE, end)  # noqa: PLW2901 - clipped to the span
        if over <= at:
            continue
        if begin > at:
            found.append(Stretch(start=at, end=begin, exact=False))
        found.append(Stretch(start=max(begin, at), end=over, exact=True))
        at = over
    if at < end:
        found.append(Stretch(start=at, end=end, exact=False))
    return tuple(found)


def kept(times: NDArray[np.float64], covering: Sequence[Stretch]) -> NDArray[np.bool_]:
    """Tell which scrapes are kept; in a thinned stretch the last one before each full minute is."""
    keep = (times // STEP + 2) % (SPARSE // STEP) == 0  # scraped a step later, and some seconds
    for stretch in covering:
        if stretch.exact:
            first, last = np.searchsorted(times, [stretch.start, stretch.end])
            keep[first:last] = True
    return np.asarray(keep, dtype=np.bool_)


def _exact(incidents: Iterable[Incident], chores: Iterable[Chore]) -> list[tuple[float, float]]:
    spans = [(chore.start - _AROUND, chore.start + chore.duration + _AROUND) for chore in chores]
    for incident in incidents:
        spans.append((incident.start - _AROUND, min(incident.end, incident.start + _FIRST)))
        spans.append((incident.end - _AROUND, incident.end + _AFTER))
    return sorted(spans)


def _merged(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for begin, end in spans:
        if merged and begin <= merged[-1][1] + 2 * _TILE:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def _tile(seconds: float) -> int:
    return int(seconds // _TILE) * _TILE
