"""One replica reads prompts slowly: its first tokens come late, and at 99.7 % promised that is too many."""

from datetime import timedelta

from drills.model import Drill, Expected, Fault

_MODEL = "qwen3-8b"

DRILL = Drill(
    name="slow-first-token",
    summary="one of three replicas reads prompts slowly",
    faults=(Fault(replica="vllm-a", name="slow_prefill", parameters={"factor": 80}),),
    bad_sample=f'model:llm_slo_burn:rate5m{{model="{_MODEL}",slo="ttft"}} > 10',
    page=Expected(
        alertname="LLMTimeToFirstTokenBudgetBurn",
        model=_MODEL,
        within=timedelta(minutes=15),
        own_pace=timedelta(seconds=10),
    ),
    load=0.4,
    promised={"ttft": "99.7%"},
    time_scale=30,
)
