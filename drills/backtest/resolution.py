"""Resolution: where every sample is kept, and where a few are enough.

In: incidents and chores. Out: `Stretch` objects that cover a span of time without gaps.

Exact: from 10 minutes before an incident until 70 minutes after its start, and from 10 minutes before its end until
30 minutes after it; 10 minutes around every chore. There every rule is evaluated each 10 s and every scrape is kept,
those of the hour before too: tiles that are counted back from any of these moments lie anywhere.
Thinned: everything else has an evaluation every `THIN` seconds, and the last scrape before and the first one after it,
which are those that a rate over any multiple of `THIN` is made of. With fewer, a rate would not count the requests
between two windows that lie side by side, and with rare requests that is noise. An alert that comes and goes between
two evaluations in quiet, or hours into an incident, is not seen.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from drills.backtest.incidents import Chore, Incident
from drills.backtest.traffic import STEP
from prometheus.windows import SHORT

__all__ = ["THIN", "Stretch", "kept", "stretches"]

THIN = 100
"""Seconds between two evaluations where nothing happens; the tiles of long windows lie at multiples of it."""
_TILE = 300
_AROUND = 600
_FIRST = 4200
_AFTER = 1800
_LOOKS_BACK = int(SHORT[-1].span.total_seconds())


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
    """Tell which scrapes are kept; in a thinned stretch those around each multiple of `THIN`."""
    around = THIN // STEP - times // STEP % (THIN // STEP)
    keep = (around == 2) | (around == 1)  # noqa: PLR2004 - scraped a step later, and some seconds
    for stretch in covering:
        if stretch.exact:
            first, last = np.searchsorted(times, [stretch.start - _LOOKS_BACK, stretch.end])
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
