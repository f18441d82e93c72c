"""Requests: what the indicators of one model count. In: phases; out: lines."""

from collections.abc import Callable

from tests.alerts.stories.lines import GONE, NOTHING, Line, Lines, counter, gauge

__all__ = ["COUNTED", "KEPT_BOUNDS", "asked", "new_bound", "old_bound", "young"]

TARGET = 'model="@",replica="a",engine="vllm"'
COUNTED = ("ttft", "itl", "availability")
_HISTOGRAMS = {
    "ttft": ("llm_time_to_first_token_seconds", "2.0", "5.0"),
    "itl": ("llm_time_per_output_token_seconds", "0.1", "0.5"),
}
KEPT_BOUNDS = "2.0 0.1"
"""Those at the thresholds, which the exporter shows whatever an engine has."""

Phase = tuple[int, float, float]
"""Samples, requests per sample, and how many of them miss the objective."""


def asked(slo: str, *phases: Phase) -> Lines:
    """Write the requests that an objective counts; for goodput, which follows from all of them, they are late."""
    if slo == "goodput":
        well = [(count, each, 0.0) for count, each, _ in phases]
        return {**asked("ttft", *phases), **asked("itl", *well), **asked("availability", *well)}
    met = counter(*((count, each - misses) for count, each, misses in phases), start=7)
    missed = counter(*((count, misses) for count, _, misses in phases), start=7)
    all_of_them = counter(*((count, each) for count, each, _ in phases), start=7)
    if slo == "availability":
        outcomes = {"stop": met, "error": missed}
        return {f'llm_requests_finished_total{{{TARGET},outcome="{name}"}}': line for name, line in outcomes.items()}
    name, threshold, beyond = _HISTOGRAMS[slo]
    bounds = {threshold: met, beyond: all_of_them, "+Inf": all_of_them}
    buckets = {f'{name}_bucket{{{TARGET},le="{bound}"}}': line for bound, line in bounds.items()}
    return {**buckets, f"{name}_count{{{TARGET}}}": all_of_them}


def new_bound(lines: Lines, at: int) -> Lines:
    """Let the bounds at the thresholds be new with sample `at`, as after a change of fleet.yml: others go on."""
    return _new_threshold(lines, at, lambda line: (*(NOTHING,) * at, *line[at:]))


def old_bound(lines: Lines, at: int) -> Lines:
    """Let the bounds at the thresholds end with sample `at`, as where fleet.yml changes and rules are not yet new."""
    return _new_threshold(lines, at, lambda line: (*line[:at], GONE))


def young(lines: Lines, since: int) -> Lines:
    """Let a replica start with sample `since`."""
    return {series: (*(NOTHING,) * since, *line[since:]) for series, line in lines.items()}


def _new_threshold(lines: Lines, at: int, bound: Callable[[Line], Line]) -> Lines:
    at_thresholds = tuple(f'le="{bound}"' for bound in KEPT_BOUNDS.split())
    thresholds = {
        f'llm_slo_threshold_seconds{{model="@",slo="{slo}"}}': gauge((at, 9), (1000, 2)) for slo in _HISTOGRAMS
    }
    return thresholds | {
        series: bound(line) if any(each in series for each in at_thresholds) else line for series, line in lines.items()
    }
