"""Routing: every alert reaches who it is for, and keeps quiet only where another one says it all."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from alerts.catalogue import ALERTS
from alerts.render import artefacts
from alerts.routing import alertmanager_config
from exporter.fleet import Fleet
from exporter.oncall import Oncall, PagerDuty, Slack, Webhook
from prometheus.deployment import LOCAL, Deployment
from running.tools import Tool
from tests.alerts.alertmanager import Alertmanager, running, write_configuration
from tests.alerts.listener import listening

MODELS = ("qwen3-8b", "meta-llama/Llama-3.1-8B-Instruct", "org/a&b", 'quo"te', "模型", "page", "*")
NAMES_AND_SEVERITIES = [
    pytest.param(alert.name, severity.value, id=f"{alert.name}-{severity.value}")
    for alert in ALERTS
    for severity in alert.severities
]


@pytest.fixture
def everybody(tmp_path: Path) -> Oncall:
    """Answer everything an operator can write in `oncall`, more than one of a kind."""
    key, address = tmp_path / "pagerduty", tmp_path / "slack"
    key.write_text("0123456789abcdef")
    address.write_text("http://127.0.0.1:9/slack")
    return Oncall(
        page=(PagerDuty(routing_key_file=key), Slack(api_url_file=address, channel="#llm-ops")),
        ticket=(Slack(api_url_file=address, channel="#llm-ops"), Slack(api_url_file=address, channel="#other")),
        heartbeat=(Webhook(url="http://127.0.0.1:9/ping"), Webhook(url="http://127.0.0.1:9/other")),
    )


def _amtool(amtool: Tool, *arguments: str | Path) -> str:
    result = subprocess.run([amtool.path, *arguments], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_amtool_accepts_every_kind_of_receiver(amtools: Tool, tmp_path: Path, everybody: Oncall) -> None:
    config = write_configuration(tmp_path, everybody)
    assert "1 templates" in _amtool(amtools, "check-config", config)


def test_amtool_accepts_the_demos_phone_and_says_nothing_against_it(amtools: Tool, tmp_path: Path) -> None:
    config = write_configuration(tmp_path, Oncall(), scale=1)
    result = subprocess.run([amtools.path, "check-config", config], capture_output=True, text=True, check=True)
    assert "4 receivers" in result.stdout
    assert "warn" not in result.stdout + result.stderr


@pytest.mark.parametrize(("name", "severity"), NAMES_AND_SEVERITIES)
def test_every_alert_goes_to_the_receiver_of_its_severity(
    amtools: Tool, tmp_path: Path, name: str, severity: str
) -> None:
    config = write_configuration(tmp_path, Oncall())
    for model in MODELS:
        labels = (f"alertname={name}", f"severity={severity}", f"model={_quoted(model)}", "replica=a")
        route = ("config", "routes", "test", f"--config.file={config}", *labels)
        assert _amtool(amtools, *route).split() == [severity]


def _quoted(text: str) -> str:
    escaped = text.replace('"', '\\"')
    return f'"{escaped}"'


@pytest.mark.parametrize("labels", [("alertname=Other",), ("alertname=Other", "severity=critical"), ("severity=Page",)])
def test_an_alert_of_nobodys_severity_is_a_ticket(amtools: Tool, tmp_path: Path, labels: tuple[str, ...]) -> None:
    config = write_configuration(tmp_path, Oncall())
    assert _amtool(amtools, "config", "routes", "test", f"--config.file={config}", *labels).split() == ["ticket"]


def test_slow_receivers_get_the_time_to_answer() -> None:
    """Alertmanager gives a notification `group_interval` to be delivered."""
    route: Any = alertmanager_config(Oncall(), Deployment())["route"]
    intervals = [each["group_interval"] for each in (route, *route["routes"]) if "group_interval" in each]
    assert intervals == ["5m", "30s", "30s"]


def test_an_operators_secrets_stay_in_their_files(tmp_path: Path, everybody: Oncall) -> None:
    text = artefacts(Fleet(replicas=(), oncall=everybody), Deployment())["alerts/generated/alertmanager.yml"]
    assert str(tmp_path / "pagerduty") in text
    assert "0123456789abcdef" not in text


def test_secret_files_are_found_from_wherever_alertmanager_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (PagerDuty(routing_key_file=Path("key")),)
    text = artefacts(Fleet(replicas=(), oncall=Oncall(page=page)), Deployment())["alerts/generated/alertmanager.yml"]
    [receiver] = [each for each in yaml.safe_load(text)["receivers"] if each["name"] == "page"]
    assert receiver["pagerduty_configs"][0]["routing_key_file"] == str(tmp_path / "key")


def test_without_oncall_the_phone_gets_everything() -> None:
    receivers: Any = alertmanager_config(Oncall(), Deployment(addresses=LOCAL))["receivers"]
    urls = {each["name"]: each["webhook_configs"][0]["url"] for each in receivers if each["name"] != "note"}
    assert urls == {name: f"http://127.0.0.1:9803/alertmanager/{name}" for name in ("page", "ticket", "heartbeat")}


def test_beside_a_receiver_that_is_named_nothing_goes_to_the_phone(amtools: Tool, tmp_path: Path) -> None:
    """Nobody starts the phone for a fleet with `oncall`: what is nobody's stays in Alertmanager."""
    page = Webhook(url="http://127.0.0.1:9/pager")
    receivers: Any = alertmanager_config(Oncall(page=(page,)), Deployment(addresses=LOCAL))["receivers"]
    assert {each["name"]: sorted(each) for each in receivers} == {
        "page": ["name", "webhook_configs"],
        **{name: ["name"] for name in ("ticket", "heartbeat", "note")},
    }
    config = write_configuration(tmp_path, Oncall(page=(page,)))
    assert "4 receivers" in _amtool(amtools, "check-config", config)
    for severity in ("page", "ticket", "heartbeat"):
        route = ("config", "routes", "test", f"--config.file={config}", "alertname=Any", f"severity={severity}")
        assert _amtool(amtools, *route).split() == [severity]


def test_what_nobody_is_told_of_fails_nowhere_and_pages_arrive(alertmanager_binaries: Tool, tmp_path: Path) -> None:
    with listening() as listener:
        config = write_configuration(tmp_path, Oncall(page=(Webhook(url=f"{listener.url}/pager"),)))
        with running(alertmanager_binaries, config, tmp_path) as alertmanager:
            alertmanager.post([_alert("Watchdog", "heartbeat"), _alert("LLMReplicaOutlier", "ticket", model="other")])
            alertmanager.process.wait_until(
                lambda: _states(alertmanager, "unprocessed") == [], "process the alerts", seconds=15
            )
            for name in ("first", "second"):
                alertmanager.post([_alert("LLMModelDown", "page", model="m", replica=name)])
                assert listener.next().path == "/pager"
            assert alertmanager.failures() == []
            assert len(alertmanager.alerts()) == 4


def test_only_the_heartbeat_does_not_say_that_it_is_over(everybody: Oncall) -> None:
    receivers: Any = alertmanager_config(everybody, Deployment())["receivers"]
    told = {
        each["name"]: {config["send_resolved"] for key, configs in each.items() if key != "name" for config in configs}
        for each in receivers
    }
    assert told == {"page": {True}, "ticket": {True}, "heartbeat": {False}, "note": set()}


def test_both_sides_of_an_inhibition_carry_the_labels_that_must_agree() -> None:
    """A label that is missing on both sides counts as equal, so one alert could silence all others without it."""
    rules: Any = alertmanager_config(Oncall(), Deployment())["inhibit_rules"]
    for rule in rules:
        for label in rule.get("equal", ()):
            for side in ("source_matchers", "target_matchers"):
                assert label == "alertname" or f'{label}!=""' in rule[side]


def test_matchers_are_quoted_so_that_old_and_new_parsers_agree() -> None:
    text = artefacts(Fleet(replicas=()), Deployment())["alerts/generated/alertmanager.yml"]
    config = yaml.safe_load(text)
    matchers = [m for route in config["route"]["routes"] for m in route.get("matchers", ())]
    matchers += [
        m for rule in config["inhibit_rules"] for side in ("source", "target") for m in rule[f"{side}_matchers"]
    ]
    assert matchers
    assert all(matcher.endswith('"') and matcher.count('"') == 2 for matcher in matchers)


def _alert(name: str, severity: str, **labels: str) -> dict[str, Any]:
    return {"labels": {"alertname": name, "severity": severity, **labels}, "annotations": {"summary": name}}


def test_an_alert_keeps_quiet_only_for_one_that_says_it_all(alertmanager_binaries: Tool, tmp_path: Path) -> None:
    burn = "LLMAvailabilityBudgetBurn"
    quiet = [
        _alert("LLMReplicaOutlier", "ticket", model="e", replica="drained"),
        _alert("LLMReplicaStuck", "page", model="e", replica="drained"),
        _alert("LLMGPULost", "ticket", model="e", replica="drained", gpu="GPU-1"),
        _alert("LLMIndicatorNoData", "ticket", model="e", slo="ttft"),
        _alert("LLMReplicaDown", "ticket", model="a", replica="r1"),
        _alert("LLMReplicaDown", "ticket", model="a", replica="r2"),
        _alert(burn, "ticket", model="a", slo="availability"),
        _alert(burn, "ticket", model="b", slo="availability"),
        _alert("LLMGoodputCollapse", "page", model="a", slo="ttft"),
        _alert(burn, "page", model="c", slo="availability"),
        _alert("LLMGoodputBudgetBurn", "page", model="b", slo="goodput"),
        _alert("LLMGoodputBudgetBurn", "page", model="c", slo="goodput"),
        _alert("LLMGoodputBudgetBurn", "page", model="over", slo="goodput"),
        _alert("LLMTimeToFirstTokenBudgetBurn", "page", model="over", slo="ttft"),
    ]
    loud = [
        _alert("LLMReplicaDraining", "note", model="e", replica="drained"),
        _alert("LLMDrainStuck", "ticket", model="e", replica="drained"),
        _alert("LLMReplicaOutlier", "ticket", model="e", replica="other"),
        _alert("LLMReplicaOutlier", "ticket", model="e"),
        _alert("LLMMonitoringBlind", "page"),
        _alert("LLMModelDown", "page", model="a"),
        _alert("LLMReplicaDown", "ticket", model="b", replica="r3"),
        _alert("LLMReplicaDown", "ticket", replica="r4"),
        _alert("LLMModelDown", "page"),
        _alert(burn, "page", model="b", slo="availability"),
        _alert("LLMGoodputCollapse", "page", model="c", slo="availability"),
        _alert("LLMGoodputCollapse", "note", model="over", slo="ttft"),
        _alert("LLMInterTokenLatencyBudgetBurn", "page", model="over", slo="itl"),
        _alert("LLMInterTokenLatencyBudgetBurn", "page", model="c", slo="itl"),
        _alert("LLMTimeToFirstTokenBudgetBurn", "ticket", model="d", slo="ttft"),
        _alert("LLMGoodputBudgetBurn", "page", model="d", slo="goodput"),
        _alert(burn, "page"),
        _alert("Other", "ticket"),
        _alert("Watchdog", "heartbeat"),
    ]
    config = write_configuration(tmp_path, Oncall())
    with running(alertmanager_binaries, config, tmp_path) as alertmanager:
        alertmanager.post([*quiet, *loud])
        alertmanager.process.wait_until(
            lambda: _states(alertmanager, "unprocessed") == [], "process the alerts", seconds=15
        )
        assert _states(alertmanager, "suppressed") == _sorted(quiet)
        assert _states(alertmanager, "active") == _sorted(loud)


def _states(alertmanager: Alertmanager, state: str) -> list[str]:
    return _sorted(each for each in alertmanager.alerts() if each["status"]["state"] == state)


def _sorted(alerts: Any) -> list[str]:  # noqa: ANN401 - any iterable of JSON
    return sorted(str(sorted(each["labels"].items())) for each in alerts)
