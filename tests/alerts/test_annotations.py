"""What an alert says to a person, with numbers, in promtool."""

import subprocess
from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from alerts.annotations import REPLICA_AND_ADDRESS
from alerts.catalogue import ALERTS
from alerts.catalogue import alert as entry
from alerts.model import Severity
from alerts.render import artefacts as alert_files
from exporter.catalogue import STATE
from exporter.fleet import Fleet
from exporter.objectives import Objectives, RatioObjective, Slos
from prometheus.deployment import COMPOSE, Deployment
from prometheus.render import artefacts as prometheus_files
from running.tools import Tool
from tests.prometheus.fleets import MIXED

MODEL = "org/a&b"
FLEET = "http://127.0.0.1:3000/d/fleet"
BOARD = f"{FLEET}?var-model=org%2Fa%26b"
RUNBOOKS = "http://127.0.0.1:9801/runbooks"

TTFT = "llm_time_to_first_token_seconds"
TARGET = f'model="{MODEL}",replica="a"'
SERIES = {
    f'{TTFT}_bucket{{{TARGET},le="0.8"}}': "0+3x360",
    f"{TTFT}_count{{{TARGET}}}": "0+4x360",
    f'{TTFT}_bucket{{model="m",replica="d",le="2.0"}}': "0x360",
    f'{TTFT}_count{{model="m",replica="d"}}': "0+4x258 1032x102",
    **{
        f'llm_replica_state{{model="{MODEL}",replica="{replica}",state="{state}"}}': f"{int(state == found)}x360"
        for replica, found in {"a": "broken", "b": "unreachable", "c": "unreachable"}.items()
        for state in STATE.values
    },
    **{
        f'llm_replica_state{{model="drained",replica="{replica}",state="{state}"}}': f"{int(state == found)}x360"
        for replica, found in {"d": "draining", "e": "loading"}.items()
        for state in STATE.values
    },
    **{
        # no sample on the edge of the window, where versions disagree
        f'llm_replica_state{{model="flaps",replica="f",state="{state}"}}': f"{values * 90}stale {values * 30}"
        for state, values in {"ready": "0 1 0 ", "unreachable": "1 0 1 ", "sleeping": "0 0 0 "}.items()
    },
    'llm_replica_up{replica="a",instance="10.0.0.1:8000"}': "0x360",
    **{
        f'llm_replica_state{{replica="new",state="{state}"}}': f"{int(state == 'denied')}x360" for state in STATE.values
    },
}


def _late(model: str, board: str, good: str, **rates: str) -> list[dict[str, dict[str, str]]]:
    """Expect one alert for each severity, which burns at its rate."""
    return [
        {
            "labels": {"severity": severity, "slo": "ttft", "model": model},
            "annotations": {
                "summary": f"{model}: first tokens come late",
                "description": f"Good in the last 5m: {good}. The error budget burns {rate} times faster than it lasts;"
                " 0% of the 28d budget is left, gone in 0s at the pace of the last hour.",
                "runbook_url": f"{RUNBOOKS}/LLMTimeToFirstTokenBudgetBurn",
                "dashboard_url": board,
            },
        }
        for severity, rate in rates.items()
    ]


STAGES = (
    *("indicators", "burn", "budget", "now", "load", "work", "days", "peers", "latency", "evidence", "hardware"),
    "alerts",
)
EXPECTED = {
    "LLMTimeToFirstTokenBudgetBurn": [
        *_late(MODEL, BOARD, "75.00%; objective: 99.9% within 800ms", page="208.3", ticket="8.7"),
        *_late("m", f"{FLEET}?var-model=m", "0.00%; objective: 95% within 2s", page="15.0"),
    ],
    "LLMModelDown": [
        {
            "labels": {"severity": "page", "model": MODEL},
            "annotations": {
                "summary": "org/a&b: no replica is ready",
                "description": "Replicas of org/a&b by state: 1 broken, 2 unreachable. At least 1 has to be ready.",
                "runbook_url": f"{RUNBOOKS}/LLMModelDown",
                "dashboard_url": BOARD,
            },
        },
        {
            "labels": {"severity": "page", "model": "drained"},
            "annotations": {
                "summary": "drained: no replica is ready (1 drained on purpose)",
                "description": "Replicas of drained by state: 1 draining, 1 loading. At least 1 has to be ready."
                " Somebody drains 1 of them:"
                " `python -m exporter undrain NAME` takes one that still runs back into service.",
                "runbook_url": f"{RUNBOOKS}/LLMModelDown",
                "dashboard_url": f"{FLEET}?var-model=drained",
            },
        },
        {
            "labels": {"severity": "page", "model": "flaps"},
            "annotations": {
                "summary": "flaps: no replica stays ready",
                "description": "Replicas of flaps by state: 1 unreachable. At least 1 has to be ready."
                " One was in 33.33% of the last 5m (limit 50%).",
                "runbook_url": f"{RUNBOOKS}/LLMModelDown",
                "dashboard_url": f"{FLEET}?var-model=flaps",
            },
        },
    ],
    "LLMReplicaDown": [
        {
            "labels": {"severity": "ticket", "model": MODEL, "replica": replica},
            "annotations": {
                "summary": f"org/a&b: replica {replica} is down",
                "description": f"{replica}{where} failed in 100% of the scrapes of the last 5m (limit 50%);"
                f" now: {state}.",
                "runbook_url": f"{RUNBOOKS}/LLMReplicaDown",
                "dashboard_url": BOARD,
            },
        }
        for replica, where, state in (
            ("a", " (10.0.0.1:8000)", "broken"),
            ("b", "", "unreachable"),
            ("c", "", "unreachable"),
        )
    ]
    + [
        {
            "labels": {"severity": "ticket", "model": "flaps", "replica": "f"},
            "annotations": {
                "summary": "flaps: replica f is down",
                "description": "f failed in 66.67% of the scrapes of the last 5m (limit 50%); now: unreachable.",
                "runbook_url": f"{RUNBOOKS}/LLMReplicaDown",
                "dashboard_url": f"{FLEET}?var-model=flaps",
            },
        },
        {
            "labels": {"severity": "ticket", "replica": "new"},
            "annotations": {
                "summary": "replica new is down",
                "description": "new failed in 100% of the scrapes of the last 5m (limit 50%); now: denied.",
                "runbook_url": f"{RUNBOOKS}/LLMReplicaDown",
                "dashboard_url": FLEET,
            },
        },
    ],
    "Watchdog": [
        {
            "labels": {"severity": "heartbeat"},
            "annotations": {
                "summary": "Prometheus and Alertmanager are alive",
                "description": "This alert always fires. When it stops, pages cannot arrive.",
                "runbook_url": f"{RUNBOOKS}/Watchdog",
                "dashboard_url": FLEET,
            },
        }
    ],
}


def _documents(expected: str, evaluate: str, groups: list[str]) -> dict[str, object]:
    return {
        "rule_files": ["rules.yml"],
        "evaluation_interval": evaluate,
        "group_eval_order": groups,
        "tests": [
            {
                "interval": "10s",
                "input_series": [{"series": name, "values": values} for name, values in SERIES.items()],
                "alert_rule_test": [
                    {
                        "eval_time": "50m",
                        "alertname": expected,
                        "exp_alerts": [
                            {"exp_labels": each["labels"], "exp_annotations": each["annotations"]}
                            for each in EXPECTED[expected]
                        ],
                    }
                ],
            }
        ],
    }


@pytest.mark.parametrize(
    ("alertname", "evaluate", "needs"),
    [
        ("LLMTimeToFirstTokenBudgetBurn", "1m", STAGES),
        ("LLMModelDown", "10s", ("load", "alerts-replicas")),
        ("LLMReplicaDown", "10s", ("load", "alerts-replicas")),
        ("Watchdog", "1m", ("alerts-watchdog",)),
    ],
)
def test_an_alert_says_what_which_model_and_how_bad(
    promtools: Tool, tmp_path: Path, alertname: str, evaluate: str, needs: tuple[str, ...]
) -> None:
    deployment = Deployment(addresses=COMPOSE)
    files = {**prometheus_files(MIXED, deployment), **alert_files(MIXED, deployment)}
    written = [yaml.safe_load(text) for path, text in files.items() if "/rules/" in path]
    groups = [group for document in written for group in document["groups"] if group["name"].startswith(needs)]
    order = sorted(
        (group["name"] for group in groups), key=lambda g: [g.startswith(each) for each in needs].index(True)
    )
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": groups}, sort_keys=False), encoding="utf-8")
    test = tmp_path / "test.yml"
    test.write_text(yaml.safe_dump(_documents(alertname, evaluate, order), sort_keys=False), encoding="utf-8")
    result = subprocess.run([promtools.path, "test", "rules", test], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_what_was_reached_is_told_finer_than_what_was_promised() -> None:
    promised = Slos(default=Objectives(availability=RatioObjective(objective=Decimal("0.9999"))))
    told = entry("LLMAvailabilityBudgetBurn").description(Fleet(replicas=(), slos=promised))
    assert 'printf "%.3f%%"' in told
    assert "objective: 99.99%." in told


def test_a_name_of_two_lines_is_one_string_in_a_template(promtools: Tool, tmp_path: Path) -> None:
    own = Objectives(availability=RatioObjective(objective=Decimal("0.9")))
    files = alert_files(Fleet(replicas=(), slos=Slos(models={'a\nb"{{\\': own})), Deployment())
    for path, text in files.items():
        if "/rules/" in path:
            (tmp_path / Path(path).name).write_text(text, encoding="utf-8")
    rules = sorted(tmp_path.glob("*.yml"))
    result = subprocess.run([promtools.path, "check", "rules", *rules], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_whatever_is_said_about_one_replica_says_where_it_runs() -> None:
    for alert in ALERTS:
        description = alert.description(MIXED)
        is_about_one = description.count("{{ $labels.replica }}") > 0
        is_told = alert.name != "LLMReplicaDraining"  # of which nobody is told
        assert (REPLICA_AND_ADDRESS in description) is (is_about_one and is_told), alert.name


def test_every_alert_can_be_told_apart_and_acted_on() -> None:
    names = [alert.name for alert in ALERTS]
    assert len(set(names)) == len(names)
    for alert in ALERTS:
        assert alert.meaning.endswith(".")
        assert alert.runbook == f"runbooks/{alert.name}.md"


def test_no_alert_has_a_value_among_its_labels() -> None:
    for path, text in alert_files(MIXED, Deployment()).items():
        if "/rules/" in path:
            rules = [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"] if "alert" in rule]
            for rule in rules:
                assert "$" not in str(rule["labels"])
                assert {"summary", "description", "runbook_url", "dashboard_url"} == set(rule["annotations"])
                assert rule["labels"]["severity"] in {severity.value for severity in Severity}
