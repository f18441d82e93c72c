"""Heat slows a card down: LLMGPUThrottled is a ticket for the replica that uses it, and nothing pages."""

from datetime import timedelta

from drills.model import CardFault, Drill, Expected
from exporter import catalogue

_HOT = {"throttle": 0x40 | 0x8, "temperature": 92, "sm_clock": 1050}
"""Two bits of NVML: the card brakes itself, because of heat."""

DRILL = Drill(
    name="gpu-throttled",
    summary="heat slows the GPU of vllm-b down",
    faults=(CardFault(card=1, says=_HOT),),
    bad_sample=f'{catalogue.GPU_THROTTLED.name}{{reason="hardware_thermal"}} == 1',
    page=Expected(alertname="LLMGPUThrottled", model="qwen3-8b", within=timedelta(minutes=10), receiver="ticket"),
    cards=3,
)
