"""Lines: series as samples, and what may happen to them. In: phases; out: what promtool reads, sample by sample."""

import re
from collections.abc import Callable
from math import nan

from exporter.catalogue import METRICS, Kind

__all__ = [
    "GONE",
    "NOTHING",
    "Lines",
    "counter",
    "each_fourth_lost",
    "ended",
    "gauge",
    "no_numbers",
    "rebucketed",
    "relabelled",
    "restarted",
    "still",
    "text",
]

Sample = float | str
Line = tuple[Sample, ...]
Lines = dict[str, Line]

NOTHING = "_"
GONE = "stale"
"""What Prometheus writes for every series of a target that it cannot scrape, and for each that left a page."""

_LOAD = ("llm_requests_running", "llm_requests_waiting", "llm_kv_cache_usage_ratio")
_FOURTH = 4
_REPLICA = re.compile(r'replica="([^"]*)"')
_FINITE_BOUND = re.compile(r'le="([0-9.]+)"')
_COUNTERS = {
    name
    for metric in METRICS
    if metric.kind is not Kind.GAUGE
    for name in (metric.name, *(f"{metric.name}_{part}" for part in ("bucket", "count", "sum")))
}


def gauge(*phases: tuple[int, Sample]) -> Line:
    """Write a gauge: each phase is a number of samples and their value."""
    return tuple(value for count, value in phases for _ in range(count))


def counter(*phases: tuple[int, float], start: float = 0) -> Line:
    """Write a counter: each phase is a number of samples and how much each adds."""
    total, written = start, []
    for count, increment in phases:
        for _ in range(count):
            total += increment
            written.append(total)
    return tuple(written)


def text(line: Line) -> str:
    """Print a line as promtool wants it."""
    return " ".join(sample if isinstance(sample, str) else f"{sample:.10g}" for sample in line)


def _counts(series: str) -> bool:
    name = series.partition("{")[0]
    return name in _COUNTERS or (name.endswith("_total") and not name.startswith("llm_"))


def _each(lines: Lines, change: Callable[[str, Line], Line]) -> Lines:
    return {series: change(series, line) for series, line in lines.items()}


def still(lines: Lines) -> Lines:
    """Let no request come: counters stand, and nothing runs or waits."""

    def stand(series: str, line: Line) -> Line:
        if _counts(series):
            return (line[0],) * len(line)
        return (0,) * len(line) if series.startswith(_LOAD) else line

    return _each(lines, stand)


def each_fourth_lost(lines: Lines) -> Lines:
    """Lose one scrape in four, of each replica another one. Of a target that does not answer, `up` alone is known."""
    targets = sorted({_target(series) for series in lines})

    def lose(series: str, line: Line) -> Line:
        if series.startswith("ALERTS{"):
            return line
        turn = targets.index(_target(series))
        lost = 0 if series.startswith("up{") else GONE
        return tuple(
            lost if (i + turn) % _FOURTH == 0 and not isinstance(sample, str) else sample
            for i, sample in enumerate(line)
        )

    return _each(lines, lose)


def _target(series: str) -> str:
    found = _REPLICA.search(series)
    return found[1] if found else ""


def ended(lines: Lines, at: int) -> Lines:
    """Take everything out with sample `at`."""
    return _each(lines, lambda _, line: (*line[:at], GONE))


def restarted(lines: Lines, at: int) -> Lines:
    """Lose the scrape `at` to a restart, after which counters begin at zero."""
    return _each(lines, lambda series, line: (*line[:at], GONE, *_reborn(series, line, at + 1)))


def _reborn(series: str, line: Line, at: int) -> Line:
    """Answer the samples from `at` on, those of a counter less what it had counted; a line may have ended before."""
    before = line[at - 1] if at <= len(line) else GONE
    if not _counts(series) or isinstance(before, str):
        return line[at:]
    return tuple(sample if isinstance(sample, str) else sample - before for sample in line[at:])


def relabelled(lines: Lines, at: int, label: str = 'zone="b"') -> Lines:
    """Restart with sample `at` under one more label: other series, while the old ones end."""
    return _succeeded(lines, at, lambda series: series.replace("{", f"{{{label},", 1) if "{" in series else "")


def rebucketed(lines: Lines, at: int, kept: str) -> Lines:
    """Restart with sample `at` with other bounds; only those `kept` by the exporter stay."""

    def renamed(series: str) -> str:
        bound = _FINITE_BOUND.search(series)
        if bound is None or bound[1] in kept:
            return ""
        return series.replace(bound[0], f'le="{float(bound[1]) * 0.9:g}"')

    return _succeeded(restarted(lines, at), at, renamed)


def _succeeded(lines: Lines, at: int, renamed: Callable[[str], str]) -> Lines:
    """Let series go on under other names; those without one go on as they are."""
    written: dict[str, Line] = {}
    for series, line in lines.items():
        successor = renamed(series)
        if successor and len(line) > at:
            written[series] = (*line[:at], GONE)
            written[successor] = (*(NOTHING,) * at, *_reborn(series, line, at))
        else:
            written[series] = line
    return written


def no_numbers(lines: Lines) -> Lines:
    """Let every sample be NaN."""
    return _each(lines, lambda _, line: (nan,) * len(line))
