"""The exporter is killed: nobody can see, and that pages."""

from datetime import timedelta

from drills.model import Drill, Expected, ProcessFault

DRILL = Drill(
    name="exporter-killed",
    summary="the exporter is killed",
    faults=(ProcessFault(process="exporter"),),
    bad_sample='up{job="exporter"} == 0',
    page=Expected(alertname="LLMMonitoringBlind", model="", within=timedelta(minutes=1)),
)
