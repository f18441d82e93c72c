"""Every replica of one model is killed: LLMModelDown pages, and nothing else does."""

from datetime import timedelta

from drills.model import Drill, Expected, Fault
from exporter import catalogue

_MODEL = "qwen3-8b"

DRILL = Drill(
    name="model-down",
    summary=f"every replica of {_MODEL} is killed",
    faults=tuple(Fault(replica=name, name="kill") for name in ("vllm-a", "vllm-b", "vllm-c")),
    bad_sample=f'sum({catalogue.REPLICA_STATE.name}{{model="{_MODEL}",state="ready"}}) == 0',
    page=Expected(alertname="LLMModelDown", model=_MODEL, within=timedelta(seconds=60)),
)
