"""Every queue is full and every request is turned away: somebody is told within minutes, and once.

At 90 % promised the burn rate alone would need 48 minutes of it.
"""

from datetime import timedelta

from drills.model import Drill, Expected, Fault

_MODEL = "qwen3-8b"

DRILL = Drill(
    name="queue-overload",
    summary="every queue is full: requests are turned away with 503, or with 200 and an error",
    faults=tuple(Fault(replica=name, name="full_queue") for name in ("vllm-a", "vllm-b", "vllm-c")),
    bad_sample=f'model:llm_slo_good:ratio2m{{model="{_MODEL}",slo="availability"}} < 0.45',
    page=Expected(
        alertname="LLMGoodputCollapse", model=_MODEL, within=timedelta(minutes=3), own_pace=timedelta(seconds=6)
    ),
    promised={"availability": "90%"},
    time_scale=20,
)
