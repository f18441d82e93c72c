"""An upgrade changes the driver under three cards: LLMGPUSourceDown is one ticket, and not one for each card."""

from datetime import timedelta

from drills.model import CardFault, Drill, Expected
from exporter import catalogue

DRILL = Drill(
    name="gpu-source-gone",
    summary="the GPU driver no longer fits its library, so nobody can tell of three cards",
    faults=(CardFault(card=0, says={"all": "!18"}),),
    bad_sample=f'{catalogue.GPU_COLLECTOR_UP.name}{{source="nvml"}} == 0',
    page=Expected(alertname="LLMGPUSourceDown", model="", within=timedelta(minutes=4), receiver="ticket"),
    cards=3,
)
