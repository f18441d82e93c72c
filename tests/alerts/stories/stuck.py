"""Stories of `alerts/groups/stuck.py`."""

from alerts.model import Severity
from exporter.catalogue import STATE
from tests.alerts.stories.lines import Line, Lines, counter, gauge
from tests.alerts.stories.situations import Situation, Story


def engine(kind: str, ready: Line, tokens: float) -> Lines:
    """Write a replica that holds requests all the time, and loads while it is not ready."""
    target = f'model="@",replica="a",engine="{kind}"'
    states = {
        f'llm_replica_state{{{target},state="{state}"}}': tuple(
            int(state == ("ready" if each else "loading")) for each in ready
        )
        for state in STATE.values
    }
    return states | {
        f"llm_requests_running{{{target}}}": gauge((len(ready), 0)),
        f"llm_requests_waiting{{{target}}}": gauge((len(ready), 3)),
        f"llm_generation_tokens_total{{{target}}}": counter((len(ready), tokens), start=1000),
    }


def stuck(kind: str, loading: int, fires: int, over: int, flapping: Line) -> Story:
    ready = gauge((loading, 0), (3 * loading, 1))
    return Story(
        alert="LLMReplicaStuck",
        severity=Severity.PAGE,
        labels='model="@",replica="a"',
        trouble=engine(kind, ready, 0),
        below={
            "tokens come": engine(kind, ready, 1),
            "hardly ready for as long": engine(kind, flapping * (4 * loading // len(flapping)), 0),
        },
        fires=fires,
        stages=("alerts-stuck",),
        middle=loading + 3,
        over=over,
        evaluate=7,
        late=loading * 4,
        cannot={Situation.REBUCKETED: "no bucket of a histogram is read"},
    )


STORIES = (
    stuck("vllm", 20, 294, 180, gauge((7, 1), (5, 0))),
    stuck("llama-server", 60, 1211, 960, gauge((50, 1), (40, 0))),
)
