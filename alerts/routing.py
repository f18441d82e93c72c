"""Routing: who hears of which alert, and which alerts keep quiet while another one speaks.

In: the `oncall` section of fleet.yml and a `Deployment`. Out: alertmanager.yml as a document, valid for Alertmanager
0.25 and 0.35. Every matcher is quoted, so that the old and the new parser read the same.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from alerts.catalogue import ALERTS
from alerts.model import Louder, Severity
from alerts.receivers import receivers
from exporter.catalogue import MODEL, REPLICA
from exporter.oncall import Oncall
from prometheus.deployment import Deployment
from prometheus.promql import quoted
from prometheus.windows import TimeScale

__all__ = ["alertmanager_config"]

_ALERTNAME = "alertname"
_SEVERITY = "severity"
_DRAIN = "LLMReplicaDraining"
"""Keeps everything else about its replica quiet, whoever says it."""


def alertmanager_config(oncall: Oncall, deployment: Deployment) -> dict[str, object]:
    """Build alertmanager.yml."""
    return {
        "route": _route(deployment.scale),
        "inhibit_rules": [
            *_louder(),
            _inhibition(
                source=[_equal(_ALERTNAME, _DRAIN)],
                target=[f'{_ALERTNAME}!~"{_DRAIN}|LLMDrainStuck"'],
                equal=(REPLICA.name,),
            ),
            _inhibition(
                source=[_equal(_SEVERITY, Severity.PAGE.value)],
                target=[_equal(_SEVERITY, Severity.TICKET.value)],
                equal=(_ALERTNAME, MODEL.name),
            ),
        ],
        "receivers": receivers(oncall, deployment.addresses),
        "templates": ["templates/*.tmpl"],
    }


def _louder() -> Iterator[dict[str, object]]:
    """Yield the inhibitions that alerts ask for themselves, one for each louder alert and its labels."""
    quiet: dict[Louder, list[str]] = {}
    for alert in ALERTS:
        for louder in alert.quiet_while:
            quiet.setdefault(louder, []).append(alert.name)
    for louder, names in quiet.items():
        yield _inhibition(
            source=[
                _equal(_ALERTNAME, louder.alertname),
                _among(_SEVERITY, (Severity.PAGE.value, Severity.NOTE.value)),
            ],
            target=[_among(_ALERTNAME, names)],
            equal=tuple(label.name for label in louder.labels),
        )


def _route(scale: TimeScale) -> dict[str, object]:
    """Build the tree: one branch per severity, and one for alerts of nobody's severity, which are tickets."""
    return {
        "receiver": Severity.TICKET.value,
        "group_by": [_ALERTNAME, MODEL.name],
        **_pace(scale, wait=30, again=timedelta(minutes=5), repeat=timedelta(hours=12)),
        "routes": [
            {
                **_branch(Severity.PAGE),
                **_pace(scale, wait=5, again=timedelta(seconds=30), repeat=timedelta(hours=4)),
            },
            _branch(Severity.TICKET),
            {
                **_branch(Severity.HEARTBEAT),
                **_pace(scale, wait=0, again=timedelta(seconds=30), repeat=timedelta(minutes=1)),
            },
            _branch(Severity.NOTE),
            {"receiver": Severity.TICKET.value},
        ],
    }


def _branch(severity: Severity) -> dict[str, object]:
    return {"matchers": [_equal(_SEVERITY, severity.value)], "receiver": severity.value}


def _pace(scale: TimeScale, *, wait: int, again: timedelta, repeat: timedelta) -> dict[str, object]:
    """Say how long a new group waits (in seconds), and how soon a changed or an unchanged one is told again.

    A notification may take no longer than `again` (at least 10 s), so less than 30 s would cut slow receivers off.
    """
    return {
        "group_wait": scale.text(timedelta(seconds=wait)) if wait else "0s",
        "group_interval": scale.text(again),
        "repeat_interval": scale.text(repeat),
    }


def _inhibition(*, source: list[str], target: list[str], equal: Sequence[str]) -> dict[str, object]:
    """Let the source silence the target where the labels in `equal` agree.

    A label that is missing on both sides agrees as well, so both sides have to carry it.
    """
    present = [f'{label}!=""' for label in equal if label != _ALERTNAME]
    return {
        "source_matchers": [*source, *present],
        "target_matchers": [*target, *present],
        **({"equal": list(equal)} if equal else {}),
    }


def _among(label: str, values: Sequence[str]) -> str:
    return f"{label}=~{quoted('|'.join(values))}"


def _equal(label: str, value: str) -> str:
    return f"{label}={quoted(value)}"
