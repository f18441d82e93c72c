"""Stories of `alerts/groups/pool.py`."""

from collections.abc import Mapping
from dataclasses import replace

from tests.alerts.stories.lines import GONE, NOTHING, Lines, counter, gauge
from tests.alerts.stories.replicas import ONLY_STATES, states
from tests.alerts.stories.situations import FLEET, Situation, Story

NO_BUCKETS = {Situation.REBUCKETED: "no bucket of a histogram is read"}
OWN = 'model="@",replica="a"'
OUTAGE = ((30, "ready"), (6, "unreachable"))
A, B, C = (f'model="@",replica="{name}",engine="vllm"' for name in "abc")


def lives(*scrapes: int) -> Lines:
    """Let a process start again and again: the tokens of each life, in scrapes."""
    tokens = (each for count in scrapes for each in counter((count, 50)))
    return {f"llm_generation_tokens_total{{{A}}}": tuple(tokens)}


def pool(**seconds: float) -> Mapping[str, float]:
    return seconds


def latency(metric: str, seconds: Mapping[str, float], each: float = 1) -> Lines:
    """Write the requests of a pool: replica -> seconds that each takes."""
    written: dict[str, tuple[float | str, ...]] = {}
    for replica, took in seconds.items():
        target = f'{{model="@",replica="{replica}",engine="vllm"}}'
        written[f"{metric}_count{target}"] = counter((300, each), start=7)
        written[f"{metric}_sum{target}"] = counter((300, each * took), start=7)
    return written


def outlier(metric: str) -> Story:
    return Story(
        alert="LLMReplicaOutlier",
        labels=OWN,
        trouble=latency(metric, pool(a=0.046, b=0.02, c=0.021)),
        below={"1.8 times the median": latency(metric, pool(a=0.038, b=0.02, c=0.021))},
        fires=840,
        stages=("peers", "alerts-pool"),
        middle=60,
        over=3900,
        evaluate=70,
        cannot=NO_BUCKETS,
        same={">= 3 -> 2": "of two replicas none takes more than twice their median, which is their mean"},
    )


def versions(*second: tuple[int, float | str]) -> Lines:
    info = "llm_replica_info"
    return {
        f'{info}{{{A},version="0.32.0"}}': gauge((480, 1)),
        f'{info}{{{B},version="0.32.0"}}': gauge((60, 1), (1, GONE), (419, NOTHING)),
        f'{info}{{{B},version="0.33.0"}}': gauge((61, NOTHING), *second),
    }


STORIES = (
    Story(
        alert="LLMReplicaFlapping",
        labels=OWN,
        trouble=states(*OUTAGE * 3, (60, "ready")),
        below={"twice, and gone again": states(*OUTAGE * 2, (30, "ready"), (66, "unreachable"))},
        well=states((168, "ready")),
        fires=1085,
        stages=("alerts-pool",),
        middle=90,
        over=3700,
        cannot=ONLY_STATES,
    ),
    Story(
        alert="LLMReplicaFlapping",
        labels=OWN,
        trouble=lives(30, 30, 30, 60),
        below={"two restarts": lives(30, 30, 90)},
        well=lives(150),
        fires=910,
        stages=("alerts-pool",),
        middle=100,
        over=3700,
        cannot={**NO_BUCKETS, Situation.NO_TRAFFIC: "a counter that stands still does not show a restart"},
    ),
    Story(
        alert="LLMNoSpareReplica",
        labels='model="@"',
        trouble=states((240, "ready")) | states((60, "ready"), (180, "unreachable"), target=B),
        below={
            "gone for half of the time": states((240, "ready"))
            | states((60, "ready"), *[(29, "unreachable"), (31, "ready")] * 3, target=B),
            "both are gone for a minute and a half": states((60, "ready"), (9, "unreachable"), (171, "ready"))
            | states((60, "ready"), (9, "unreachable"), (171, "ready"), target=B),
            "back for a while": states((240, "ready"))
            | states((60, "ready"), (40, "unreachable"), (140, "ready"), target=B),
        },
        fires=1218,
        evaluate=14,
        late=200,
        fleet=replace(FLEET, spare_replicas=1),
        stages=("load", "alerts-pool"),
        middle=70,
        over=120,
        cannot=ONLY_STATES,
    ),
    Story(
        alert="LLMColdStartSlow",
        labels=OWN,
        trouble=states((30, "unreachable"), (120, "loading")),
        below={"nine minutes": states((30, "unreachable"), (54, "loading"), (66, "ready"))},
        fires=910,
        stages=("alerts-pool",),
        middle=60,
        over=120,
        late=200,
        cannot=ONLY_STATES,
    ),
    outlier("llm_time_per_output_token_seconds"),
    outlier("llm_time_to_first_token_seconds"),
    Story(
        alert="LLMVersionSkew",
        labels='model="@",engine="vllm"',
        trouble=versions((419, 1)),
        below={
            "a rollout that ends within six hours": versions((200, 1), (1, GONE), (218, NOTHING)),
        },
        fires=25410,
        stages=("alerts-pool",),
        every=60,
        evaluate=210,
        middle=80,
        over=900,
        cannot={**ONLY_STATES, Situation.NO_NUMBERS: "a series about a version is constant 1"},
    ),
)
