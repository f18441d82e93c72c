"""Stories of `alerts/groups/replicas.py`."""

from collections.abc import Mapping
from typing import Any

from alerts.model import Severity
from exporter.catalogue import STATE
from tests.alerts.stories.lines import Lines, gauge
from tests.alerts.stories.situations import Situation, Story

TARGET = 'model="@",replica="a",engine="vllm"'
ONLY_STATES = {
    Situation.NO_TRAFFIC: "a state does not depend on requests",
    Situation.RESET: "states do not count",
    Situation.REBUCKETED: "no bucket of a histogram is read",
}


def states(*phases: tuple[int, str], target: str = TARGET) -> Lines:
    """Write the state of a replica: each phase is a number of scrapes and the state they found."""
    return {
        f'llm_replica_state{{{target},state="{state}"}}': gauge(
            *((count, int(each == state)) for count, each in phases)
        )
        for state in STATE.values
    }


def sometimes(share: int, of: int, count: int) -> tuple[tuple[int, str], ...]:
    """Spread failures evenly: so many of so many scrapes."""
    return tuple((1, "unreachable" if (i + 1) * share // of > i * share // of else "ready") for i in range(count))


def model_down(
    trouble: Lines,
    below: Mapping[str, Lines],
    fires: int,
    **others: Any,  # noqa: ANN401 - fields of a story
) -> Story:
    return Story(
        alert="LLMModelDown",
        severity=Severity.PAGE,
        labels='model="@"',
        trouble=trouble,
        below=below,
        fires=fires,
        stages=("load", "alerts-replicas"),
        cannot=ONLY_STATES,
        same={
            **dict.fromkeys(("3 -> 2", "3 -> 4"), "it tells a restart of Prometheus, in which nothing is recorded"),
            **dict.fromkeys(
                ("4 -> 3", "4 -> 5"), "who is ready for less than half of 5m, never gone for 30s, changes more"
            ),
        },
        **others,
    )


STORIES = (
    model_down(
        states((60, "ready"), (60, "unreachable")),
        {"two scrapes in a row fail": states(*[(6, "ready"), (2, "unreachable")] * 15)},
        637,
        well=states((120, "ready")),
        middle=58,
        over=40,
        evaluate=7,
    ),
    model_down(
        states((150, "unreachable")),
        {"not for ten minutes yet": states((55, "unreachable"), (95, "ready"))},
        600,
        middle=30,
        over=60,
        late=200,
        evaluate=10,
    ),
    model_down(
        states((30, "ready"), *[(2, "unreachable"), (1, "ready"), (2, "unreachable"), (2, "ready")] * 20),
        {
            "ready for five ninths of the time": states(
                (30, "ready"), *[(2, "unreachable"), (2, "ready"), (2, "unreachable"), (3, "ready")] * 15
            )
        },
        560,
        clear=states((30, "ready"), *[(2, "unreachable"), (1, "ready")] * 47),
        well=states((170, "ready")),
        middle=100,
        over=400,
        evaluate=10,
    ),
    Story(
        alert="LLMReplicaDown",
        labels='model="@",replica="a"',
        trouble=states((60, "ready"), *sometimes(17, 30, 120)),
        below={"13 of 30 scrapes fail": states((60, "ready"), *sometimes(13, 30, 120))},
        clear=states((60, "ready"), (120, "unreachable")),
        fires=1225,
        stages=("alerts-replicas",),
        middle=80,
        over=70,
        cannot=ONLY_STATES,
    ),
)
