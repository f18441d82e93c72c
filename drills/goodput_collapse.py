"""Every first token comes late: no budget of 95 % is in danger for most of an hour, but somebody is told at once."""

from datetime import timedelta

from drills.model import Drill, Expected, Fault

_MODEL = "qwen3-8b"

DRILL = Drill(
    name="goodput-collapse",
    summary="all three replicas read prompts slowly",
    faults=tuple(
        Fault(replica=name, name="slow_prefill", parameters={"factor": 45}) for name in ("vllm-a", "vllm-b", "vllm-c")
    ),
    bad_sample=f'model:llm_slo_good:ratio2m{{model="{_MODEL}",slo="ttft"}} < 0.48',
    page=Expected(
        alertname="LLMGoodputCollapse", model=_MODEL, within=timedelta(minutes=3), own_pace=timedelta(seconds=15)
    ),
    load=0.6,
    time_scale=15,
)
