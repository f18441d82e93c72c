"""Stories of `alerts/groups/drain.py`. A test begins at 0 by the clock, so a marker's end is a second of it."""

from alerts.model import Severity
from tests.alerts.stories.lines import GONE, NOTHING, Lines, gauge
from tests.alerts.stories.situations import Situation, Story

TARGET = 'model="@",replica="a",engine="vllm"'
ONLY_GAUGES = {
    Situation.RESET: "gauges do not count",
    Situation.REBUCKETED: "no bucket of a histogram is read",
}


def marked(*phases: tuple[int, float]) -> Lines:
    return {f"llm_replica_draining{{{TARGET}}}": gauge(*phases)}


def drained(held: int, removed: int = 70) -> Lines:
    """Let a drain end at second 700, unless somebody removes its marker, while requests run until the sample `held`."""
    return {
        f"llm_replica_drain_expiry_timestamp_seconds{{{TARGET}}}": gauge((10, NOTHING), (removed - 10, 700), (1, GONE)),
        f"llm_requests_running{{{TARGET}}}": gauge((held, 3), (140 - held, 0)),
    }


STORIES = (
    Story(
        alert="LLMReplicaDraining",
        severity=Severity.NOTE,
        labels='model="@",replica="a"',
        trouble=marked((10, 0), (30, 1)),
        below={"no marker": marked((40, 0))},
        fires=105,
        stages=("alerts-drain",),
        middle=20,
        over=70,
        evaluate=7,
        cannot={**ONLY_GAUGES, Situation.NO_TRAFFIC: "a marker does not depend on requests"},
    ),
    Story(
        alert="LLMDrainStuck",
        labels='model="@",replica="a"',
        trouble=drained(140),
        below={
            "empty just in time": drained(69),
            "a marker that somebody removes": drained(140, removed=60),
        },
        fires=707,
        stages=("alerts-drain",),
        middle=60,
        over=980,
        evaluate=7,
        cannot=ONLY_GAUGES,
    ),
)
