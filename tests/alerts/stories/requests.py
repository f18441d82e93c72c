"""Requests: what the indicators of one model count. In: phases; out: lines."""

from tests.alerts.stories.lines import NOTHING, Lines, counter

__all__ = ["COUNTED", "KEPT_BOUNDS", "asked", "new_bound"]

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
    new = tuple(f'le="{bound}"' for bound in KEPT_BOUNDS.split())
    return {
        series: (*(NOTHING,) * at, *line[at:]) if any(bound in series for bound in new) else line
        for series, line in lines.items()
    }
