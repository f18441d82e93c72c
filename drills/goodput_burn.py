"""A quarter of the requests miss an objective that allows it: goodput alone is in danger."""

from datetime import timedelta

from drills.model import Drill, Expected, Fault

_MODEL = "qwen3-8b"

DRILL = Drill(
    name="goodput-burn",
    summary="a quarter of the requests fail where only goodput promises more",
    faults=tuple(
        Fault(replica=name, name="errors", parameters={"share": 0.25}) for name in ("vllm-a", "vllm-b", "vllm-c")
    ),
    bad_sample=f'model:llm_slo_burn:rate5m{{model="{_MODEL}",slo="goodput"}} > 10',
    page=Expected(
        alertname="LLMGoodputBudgetBurn", model=_MODEL, within=timedelta(minutes=15), own_pace=timedelta(seconds=10)
    ),
    promised={"availability": "60%", "goodput": "99.9%"},
    time_scale=30,
)
