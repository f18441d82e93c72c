"""Page: a month of counts -> the samples a Prometheus would have scraped, in the OpenMetrics text promtool reads.

In: a profile, a `Month`, which scrapes to keep. Out: lines of text, series by series.

A scrape that failed leaves no sample. Prometheus would also mark the series as gone for that moment, which this text
cannot say; rules that look at windows, as ours do, see no difference.
"""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from drills.backtest.profiles import Profile
from drills.backtest.traffic import STEP, Month
from exporter.catalogue import REPLICA_STATE, REQUESTS_FINISHED, REQUESTS_REJECTED, TPOT, TTFT, bound_text

__all__ = ["EPOCH", "SCRAPE_PHASE", "Totals", "lines"]

EPOCH = 1_704_067_200
"""A Monday, 00:00, from which the backtest counts its seconds."""
SCRAPE_PHASE = 3.7
"""Seconds from the end of a step until it is scraped. Not at full seconds: there Prometheus 2 and 3 disagree whether a
sample at the edge of a window counts."""

Counts = NDArray[np.int64]
Totals = dict[str, int]
"""The last value of each counter, from which the next month goes on."""

_MEMBERS = ("a", "b")


def lines(profile: Profile, month: Month, kept: NDArray[np.bool_], totals: Totals) -> Iterator[str]:
    """Write every series of a model; `totals` is brought up to date."""
    at = EPOCH + month.times + STEP + SCRAPE_PHASE
    stamps = np.char.mod("%.1f", at)
    for member, name in enumerate(_MEMBERS):
        seen = kept & month.scraped[member]
        shown = stamps[seen].tolist()
        for series, counts in _counters(profile, month, member, name).items():
            values = _since_reset(counts, month.reset[member], totals.get(series, 0))
            totals[series] = int(values[-1])
            # A replica that is away shows nothing; its exporter still says that it is not ready.
            visible = month.ready[member][seen]
            rows = zip(values[seen].tolist(), shown, visible.tolist(), strict=True)
            yield "".join([f"{series} {value} {stamp}\n" for value, stamp, serves in rows if serves])
        state = f'{REPLICA_STATE.name}{{model="{profile.model}",replica="{name}",state="ready"}}'
        ready = month.ready[member][seen].tolist()
        yield "".join([f"{state} {serves:d} {stamp}\n" for serves, stamp in zip(ready, shown, strict=True)])


def _counters(profile: Profile, month: Month, member: int, name: str) -> Mapping[str, Counts]:
    """Name the counters of a member, with what each step adds."""
    counts = {key: rows[member] for key, rows in month.counts.items()}
    of = f'model="{profile.model}",replica="{name}",engine="vllm"'
    le = {
        metric.name: bound_text(threshold.total_seconds())
        for metric, threshold in ((TTFT, profile.objectives.ttft.threshold), (TPOT, profile.objectives.itl.threshold))
    }
    return {
        f'{TTFT.bucket}{{{of},le="{le[TTFT.name]}"}}': counts["answered"] - counts["late"],
        f"{TTFT.count}{{{of}}}": counts["answered"],
        f'{TPOT.bucket}{{{of},le="{le[TPOT.name]}"}}': counts["answered"] - counts["slow"],
        f"{TPOT.count}{{{of}}}": counts["answered"],
        f'{REQUESTS_FINISHED.name}{{{of},outcome="stop"}}': counts["answered"],
        f'{REQUESTS_FINISHED.name}{{{of},outcome="error"}}': counts["error"],
        f'{REQUESTS_REJECTED.name}{{{of},reason="queue_requests"}}': counts["rejected"],
    }


def _since_reset(counts: Counts, reset: NDArray[np.bool_], before: int) -> Counts:
    """Add up what each step adds, beginning at 0 again where counters were reset."""
    running = before + np.cumsum(counts)
    at = np.flatnonzero(reset)
    floor = np.zeros(len(counts), dtype=np.int64)
    floor[at] = np.diff(np.concatenate([[0], running[at]]))
    return np.asarray(running - np.cumsum(floor), dtype=np.int64)
