"""Three in ten requests end with an error: the budget of availability burns, and most users are still served."""

from datetime import timedelta

from drills.model import Drill, Expected, Fault

_MODEL = "qwen3-8b"

DRILL = Drill(
    name="failing-requests",
    summary="three in ten requests end with an error",
    faults=tuple(
        Fault(replica=name, name="errors", parameters={"share": 0.3}) for name in ("vllm-a", "vllm-b", "vllm-c")
    ),
    bad_sample=f'model:llm_slo_burn:rate5m{{model="{_MODEL}",slo="availability"}} > 10',
    page=Expected(
        alertname="LLMAvailabilityBudgetBurn",
        model=_MODEL,
        within=timedelta(minutes=15),
        own_pace=timedelta(seconds=10),
    ),
    promised={"availability": "99.9%"},
    time_scale=30,
)
