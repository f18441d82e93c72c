"""A card falls off the bus: LLMGPULost is a ticket for the replica that uses it, and nothing pages."""

from datetime import timedelta

from drills.model import CardFault, Drill, Expected
from exporter import catalogue

DRILL = Drill(
    name="gpu-lost",
    summary="the GPU of vllm-a falls off the bus",
    faults=(CardFault(card=0, says={"all": "!15"}),),
    bad_sample=f"{catalogue.GPU_UP.name} == 0",
    page=Expected(alertname="LLMGPULost", model="qwen3-8b", within=timedelta(minutes=4), receiver="ticket"),
    cards=3,
)
