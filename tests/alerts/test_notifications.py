"""Notifications: what a person reads, rendered by a real Alertmanager, whichever annotations are missing."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from exporter.oncall import Oncall, PagerDuty, Slack, Webhook
from running.tools import Tool
from tests.alerts.alertmanager import Alertmanager, running, write_configuration
from tests.alerts.listener import Listener, listening

ANNOTATIONS = {
    "summary": "org/a&b: no replica is ready",
    "description": "Replicas of org/a&b by state: 3 unreachable. At least 1 has to be ready.",
    "dashboard_url": "http://127.0.0.1:3000/d/fleet?var-model=org%2Fa%26b",
    "runbook_url": "http://127.0.0.1:9801/runbooks/LLMModelDown",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What one alert group became, by receiver."""

    slack: dict[str, Any]
    pagerduty: dict[str, Any]
    webhook: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnCall:
    """An Alertmanager whose pages go to Slack, PagerDuty and a webhook, all of them listening here."""

    alertmanager: Alertmanager
    listener: Listener

    def page(self, *alerts: dict[str, Any]) -> Sent:
        """Post a group of alerts and wait until all receivers have it."""
        self.alertmanager.post(alerts)
        bodies = {message.path: message.body for message in (self.listener.next() for _ in range(3))}
        assert not self.alertmanager.failures()
        [attachment] = bodies["/slack"]["attachments"]
        return Sent(slack=attachment, pagerduty=bodies["/pagerduty"], webhook=bodies["/webhook"])


@pytest.fixture(scope="module")
def oncall(alertmanager_binaries: Tool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnCall]:
    directory = tmp_path_factory.mktemp("oncall")
    with listening() as listener:
        key, address = directory / "pagerduty", directory / "slack"
        key.write_text("key")
        address.write_text(f"{listener.url}/slack")
        page = (
            Slack(api_url_file=address, channel="#llm-ops"),
            PagerDuty(routing_key_file=key),
            Webhook(url=f"{listener.url}/webhook"),
        )
        config = write_configuration(directory, Oncall(page=page), pagerduty=f"{listener.url}/pagerduty")
        with running(alertmanager_binaries, config, directory) as alertmanager:
            yield OnCall(alertmanager=alertmanager, listener=listener)


def alert(group: str, annotations: dict[str, str] | None = None, **labels: str) -> dict[str, Any]:
    """Make an alert of a group of its own."""
    return {
        "labels": {"alertname": group, "severity": "page", **labels},
        "annotations": ANNOTATIONS if annotations is None else annotations,
    }


def silence(oncall: OnCall, labels: str) -> str:
    return f"Silence: {oncall.alertmanager.url}/#/silences/new?filter=%7B{labels}%7D"


def test_one_alert_says_what_which_model_how_bad_and_where_to_look(oncall: OnCall) -> None:
    sent = oncall.page(alert("LLMModelDown", model="org/a&b"))
    assert sent.slack["title"] == "org/a&b: no replica is ready"
    assert sent.slack["title_link"] == ANNOTATIONS["dashboard_url"]
    assert sent.slack["text"].splitlines() == [
        "org/a&b: no replica is ready",
        ANNOTATIONS["description"],
        f"Board: {ANNOTATIONS['dashboard_url']}",
        f"Runbook: {ANNOTATIONS['runbook_url']}",
        silence(oncall, "alertname%3D%22LLMModelDown%22%2Cmodel%3D%22org%2Fa%26b%22"),
    ]
    assert sent.pagerduty["routing_key"] == "key"
    assert sent.pagerduty["payload"]["summary"] == "org/a&b: no replica is ready"
    assert sent.pagerduty["client_url"] == ANNOTATIONS["dashboard_url"]
    details = f"1 firing, 0 resolved\n{sent.slack['text']}"
    assert sent.pagerduty["payload"]["custom_details"]["alerts"] == details
    assert sent.webhook["alerts"][0]["annotations"] == ANNOTATIONS


def test_a_silence_for_alerts_about_no_model_leaves_those_about_models_alone(oncall: OnCall) -> None:
    sent = oncall.page(alert("LLMReplicaDown", replica="a"))
    assert sent.slack["text"].splitlines()[-1] == silence(oncall, "alertname%3D%22LLMReplicaDown%22%2Cmodel%3D%22%22")


def test_two_alerts_with_different_texts_are_both_readable(oncall: OnCall) -> None:
    texts = [{**ANNOTATIONS, "summary": f"replica {name} is down", "description": f"{name} failed"} for name in "ab"]
    sent = oncall.page(*(alert("Two", text, replica=text["summary"]) for text in texts))
    assert sent.slack["title"] == "replica a is down, and 1 more"
    assert sent.slack["text"].splitlines()[:4] == [
        "replica a is down",
        "a failed",
        "replica b is down",
        "b failed",
    ]


def test_two_hundred_alerts_still_fit_a_phone(oncall: OnCall) -> None:
    sent = oncall.page(*(alert("Storm", replica=f"r{number:03}") for number in range(200)))
    lines = sent.slack["text"].splitlines()
    assert sent.slack["title"] == "org/a&b: no replica is ready, and 199 more"
    assert len(lines) == 14
    assert lines[10] == "… and 195 more"
    assert len(sent.slack["text"]) < 1500
    assert sent.pagerduty["payload"]["custom_details"]["alerts"].startswith("200 firing, 0 resolved\n")


@pytest.mark.parametrize("missing", [*ANNOTATIONS, "everything"])
def test_an_annotation_that_is_missing_is_left_out_and_nothing_fails(oncall: OnCall, missing: str) -> None:
    kept = {} if missing == "everything" else {key: text for key, text in ANNOTATIONS.items() if key != missing}
    sent = oncall.page(alert(f"Without-{missing}", kept, model="m"))
    expected = f"Without-{missing} m" if missing in {"summary", "everything"} else ANNOTATIONS["summary"]
    assert sent.slack["title"] == expected
    assert "no value" not in str(sent.slack) + str(sent.pagerduty)
    assert isinstance(sent.pagerduty["payload"]["custom_details"]["alerts"], str)
    for key, text in ANNOTATIONS.items():
        assert (text in sent.slack["text"]) == (key in kept)


def test_a_name_cannot_mention_people_in_a_channel(oncall: OnCall) -> None:
    sent = oncall.page(alert("Mention", {"summary": "<!channel> is down", "description": "<http://x|y>"}))
    assert "<" not in sent.slack["title"] + sent.slack["text"]
    assert sent.slack["text"].splitlines()[:2] == ["(!channel) is down", "(http://x|y)"]


def test_resolved_alerts_are_told_as_such(oncall: OnCall) -> None:
    firing = alert("Over", model="m")
    oncall.page(firing)
    sent = oncall.page({**firing, "endsAt": "2020-01-01T00:00:00Z"})
    assert sent.slack["title"] == "Resolved: org/a&b: no replica is ready"
    assert sent.slack["text"].splitlines()[0] == "Resolved: org/a&b: no replica is ready"
    assert sent.pagerduty["event_action"] == "resolve"
    assert sent.webhook["status"] == "resolved"
