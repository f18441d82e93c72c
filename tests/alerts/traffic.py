"""Requests of one model as the series of the three indicators. In: phases; out: series text -> values for promtool."""

from collections.abc import Mapping, Sequence

from tests.prometheus.promtool import samples

__all__ = ["MODEL", "SLOS", "Phase", "joined", "traffic"]

MODEL = "org/a&b"
SLOS = ("ttft", "itl", "availability")

Bad = float | Mapping[str, float] | None
Phase = tuple[int, float | None, Bad]
"""Samples, good requests per sample, bad ones; None is a scrape that failed.

Bad requests come on top of the good ones. A mapping says which of the good ones miss an objective instead, by `slo`.
"""


def traffic(
    *phases: Phase, model: str = MODEL, replica: str = "vllm-a", end: str = "", slos: Sequence[str] = SLOS
) -> dict[str, str]:
    """Write the series of one replica, for the indicators in `slos`."""
    target = f'model="{model}",replica="{replica}",engine="vllm"'
    ttft, tpot = "llm_time_to_first_token_seconds", "llm_time_per_output_token_seconds"
    finished = f"llm_requests_finished_total{{{target}"
    names = {
        "ttft": (f'{ttft}_bucket{{{target},le="2.0"}}', f"{ttft}_count{{{target}}}"),
        "itl": (f'{tpot}_bucket{{{target},le="0.1"}}', f"{tpot}_count{{{target}}}"),
        "availability": (f'{finished},outcome="stop"}}', f'{finished},outcome="error"}}'),
    }
    series = {}
    for slo in slos:
        good, other = names[slo]
        counted = [_counted(slo, phase) for phase in phases]
        series[good] = samples(*((count, met) for count, met, _ in counted)) + end
        series[other] = samples(*((count, missed) for count, _, missed in counted)) + end
        if slo != "availability":
            both = ((count, None if met is None else met + (missed or 0)) for count, met, missed in counted)
            series[other] = samples(*both) + end
    return series


def _counted(slo: str, phase: Phase) -> tuple[int, float | None, float | None]:
    count, good, bad = phase
    if good is None or bad is None:
        return count, None, None
    if isinstance(bad, Mapping):
        missed = bad.get(slo, 0)
        return count, good - missed, missed
    return count, good, bad


def joined(first: Mapping[str, str], second: Mapping[str, str]) -> dict[str, str]:
    """Let the second follow the first in the same series: counters that start at 0 again, as after a restart."""
    return {name: f"{values} {second[name]}" for name, values in first.items()}
