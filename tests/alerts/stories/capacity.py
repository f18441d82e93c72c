"""The story of `alerts/groups/capacity.py`, every ten minutes: its subquery asks on the hour."""

from tests.alerts.stories.lines import Lines
from tests.alerts.stories.situations import Situation, Story


def rising(start: float, each: float) -> Lines:
    return {'llm_kv_cache_usage_ratio{model="@",replica="a"}': tuple(start + each * i for i in range(530))}


STORIES = (
    Story(
        alert="LLMCapacityForecast",
        labels='model="@"',
        trouble=rising(0.8, 0.0001),
        below={"a little less than full in a week": rising(0.69, 0.00001)},
        fires=277200,
        stages=("load", "days", "alerts-capacity"),
        every=600,
        evaluate=600,
        middle=400,
        late=3600,
        over=37 * 3600,
        cannot={
            Situation.RESET: "a gauge does not count",
            Situation.REBUCKETED: "no bucket of a histogram is read",
        },
    ),
)
