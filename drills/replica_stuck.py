"""An engine hangs while its health check says 200: its replica pages."""

from datetime import timedelta

from drills.model import Drill, Expected, Fault

DRILL = Drill(
    name="replica-stuck",
    summary="vllm-b hangs, and /health says 200",
    faults=(Fault(replica="vllm-b", name="hang"),),
    bad_sample='rate(llm_generation_tokens_total{replica="vllm-b"}[3s]) == 0',
    page=Expected(alertname="LLMReplicaStuck", model="qwen3-8b", within=timedelta(minutes=4)),
    time_scale=15,
)
