"""Stories of `alerts/groups/fleet.py`."""

from tests.alerts.stories.lines import GONE, Lines, gauge
from tests.alerts.stories.replicas import ONLY_STATES, states
from tests.alerts.stories.situations import Situation, Story

CANNOT = {**ONLY_STATES, Situation.GONE: "it is what it is about"}
STAGES = ("load", "alerts-fleet")


def leaves(*phases: tuple[int, str]) -> Lines:
    """Let the only replica of a model leave after its phases."""
    left = {series: (*line, GONE) for series, line in states(*phases).items()}
    return left | {'up{job="exporter",instance="@"}': gauge((180, 1))}


def shrinks(left: int) -> Lines:
    """Let so many of eleven replicas be left after ten minutes."""
    return {
        series: line if i < left else (*line[:60], GONE)
        for i in range(11)
        for series, line in states((180, "ready"), target=f'model="m",replica="{i}"').items()
    }


def counted(*phases: tuple[int, int | str]) -> Lines:
    return {"llm_fleet_replicas{}": gauge(*phases), 'up{job="exporter",instance="a"}': gauge((180, 1))}


STORIES = (
    Story(
        alert="LLMFleetShrunk",
        labels='model="@"',
        trouble=leaves((60, "ready")),
        below={"drained before": leaves((50, "ready"), (10, "draining"))},
        fires=1260,
        stages=STAGES,
        middle=40,
        over=0,
        cannot=CANNOT,
    ),
    Story(
        alert="LLMFleetShrunk",
        labels="",
        trouble=shrinks(5),
        below={"six of eleven are left": shrinks(6)},
        clear=shrinks(2),
        well=shrinks(11),
        fires=1260,
        stages=STAGES,
        middle=40,
        over=0,
        cannot=CANNOT,
    ),
    Story(
        alert="LLMFleetShrunk",
        labels="",
        trouble=counted((60, 3), (1, GONE)),
        below={"a replica is known": counted((180, 1))},
        fires=1295,
        stages=STAGES,
        middle=40,
        over=0,
        cannot={**CANNOT, Situation.NO_NUMBERS: "how many replicas there are is the exporter's own number"},
    ),
)
