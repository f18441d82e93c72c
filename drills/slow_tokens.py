"""Two replicas give their tokens slowly: at 99.7 % promised that is too many answers."""

from datetime import timedelta

from drills.model import Drill, Expected, Fault

_MODEL = "qwen3-8b"

DRILL = Drill(
    name="slow-tokens",
    summary="two of three replicas give their tokens slowly",
    faults=tuple(Fault(replica=name, name="slow_decode", parameters={"factor": 4}) for name in ("vllm-a", "vllm-b")),
    bad_sample=f'model:llm_slo_burn:rate5m{{model="{_MODEL}",slo="itl"}} > 10',
    page=Expected(
        alertname="LLMInterTokenLatencyBudgetBurn",
        model=_MODEL,
        within=timedelta(minutes=15),
        own_pace=timedelta(seconds=20),
    ),
    load=0.4,
    promised={"itl": "99.7%"},
    time_scale=30,
)
