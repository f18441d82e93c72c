"""What runs is decided by fleet.yml: the simulator only for the demo fleet, the phone for who has no other."""

from datetime import timedelta
from pathlib import Path

import pytest

from alerts.render import artefacts
from exporter.fleet import load
from prometheus.deployment import LOCAL, Deployment
from running import debian, services, tools, up
from running.errors import FleetRefusedError, ToolMissingError
from running.paths import ROOT

OWN = "replicas: [{name: big, url: 'http://10.0.0.11:8000'}]\n"


def _plan(tmp_path: Path, text: str) -> up.Plan:
    file = tmp_path / "fleet.yml"
    file.write_text(text)
    return up.plan_for(load(file))


def _names(plan: up.Plan) -> str:
    return " ".join(sorted(service.name for service in plan.services))


def test_the_committed_fleet_is_the_demo() -> None:
    plan = up.plan_for(load(ROOT / "fleet.yml"))
    assert _names(plan) == "alertmanager exporter load phone prometheus simulator"
    assert sorted(plan.ports) == [9090, 9093, 9801, 9803, 9810, 9811, 9812, 9813, 9814, 9815]


def test_an_operators_own_fleet_starts_no_simulator(tmp_path: Path) -> None:
    plan = _plan(tmp_path, OWN)
    assert _names(plan) == "alertmanager exporter phone prometheus"
    assert 9810 not in plan.ports


def test_a_fleet_with_on_call_needs_no_phone(tmp_path: Path) -> None:
    plan = _plan(tmp_path, OWN + "oncall: {page: [{webhook: {url: 'http://pager.example/page'}}]}\n")
    assert _names(plan) == "alertmanager exporter prometheus"


HOOK = "[{webhook: {url: 'http://pager.example/hook'}}]"


@pytest.mark.parametrize(
    "oncall", ["", "oncall:", f"oncall: {{page: {HOOK}}}", f"oncall: {{page: {HOOK}, heartbeat: {HOOK}}}"]
)
def test_the_phone_is_started_wherever_something_is_sent_to_it(tmp_path: Path, oncall: str) -> None:
    file = tmp_path / "fleet.yml"
    file.write_text(f"{OWN}{oncall}\n")
    fleet = load(file)
    routing = artefacts(fleet, Deployment(addresses=LOCAL))["alerts/generated/alertmanager.yml"]
    assert (LOCAL.phone in routing) == (services.PHONE in up.plan_for(fleet).services)


def test_one_replica_of_the_demo_is_enough_for_the_simulator(tmp_path: Path) -> None:
    mixed = "replicas: [{name: big, url: 'http://10.0.0.11:8000'}, {name: toy, url: 'http://localhost:9811'}]\n"
    assert "simulator" in _names(_plan(tmp_path, mixed))


def test_a_simulators_port_on_another_machine_is_no_demo(tmp_path: Path) -> None:
    assert "simulator" not in _names(_plan(tmp_path, "replicas: [{name: far, url: 'http://10.0.0.11:9811'}]\n"))


def test_a_fleet_with_a_mistake_is_refused_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yml"
    file.write_text("replicas: [{name: vllm-a, url: 'vllm-a:8000'}]\n")
    with pytest.raises(FleetRefusedError, match=r"fleet\.yml:1: replicas\[0\] \(vllm-a\)\.url: expected http"):
        up.up(file, run=tmp_path / "run", time_scale=1)
    assert not (tmp_path / "run/logs").exists()


def test_a_machine_without_the_tool_and_without_debian_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((tools, "BUILT"), (tools, "UNPACKED")):
        monkeypatch.setattr(module, name, tmp_path / "nothing")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not debian.is_at_hand()
    with pytest.raises(ToolMissingError, match="install Debian's package `prometheus`, or run `make tools`"):
        up.up(ROOT / "fleet.yml", run=tmp_path / "run", time_scale=1)


@pytest.mark.parametrize(("window", "kept"), [(1, "45d"), (30, "45d"), (31, "46d"), (90, "105d")])
def test_samples_are_kept_for_longer_than_the_budget_lasts(window: int, kept: str) -> None:
    assert up.retention(timedelta(days=window)) == kept
