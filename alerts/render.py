"""Render: alerts and objectives -> the text of this stage's files.

In: a `Fleet` and a `Deployment`. Out: {path from the root of the project: text}. The notification templates are read
from `alerts/templates`; everything else is pure.
"""

from collections.abc import Iterator
from pathlib import Path

from alerts import evidence, objectives
from alerts.catalogue import GROUPS
from alerts.model import Alert, AlertGroup, AlertRule
from alerts.routing import alertmanager_config
from exporter.catalogue import MODEL, SLO
from exporter.fleet import Fleet
from prometheus.deployment import Addresses, Deployment
from prometheus.render import HEADER, rules_text, yaml_text
from prometheus.windows import duration_text

__all__ = ["artefacts"]

_TEMPLATES = Path(__file__).with_name("templates")


def artefacts(fleet: Fleet, deployment: Deployment) -> dict[str, str]:
    """Return the files of this stage: path from the root -> text."""
    return {
        "alerts/generated/rules/objectives.yml": rules_text(objectives.groups(fleet.slos), deployment.scale),
        "alerts/generated/rules/trust.yml": rules_text(evidence.groups(fleet.slos), deployment.scale),
        **{
            f"alerts/generated/rules/{group.name}.yml": yaml_text({"groups": list(_groups(group, fleet, deployment))})
            for group in GROUPS
        },
        "alerts/generated/alertmanager.yml": yaml_text(alertmanager_config(fleet.oncall, deployment)),
        **{f"alerts/generated/templates/{path.name}": _template(path) for path in sorted(_TEMPLATES.glob("*.tmpl"))},
    }


def _template(path: Path) -> str:
    return f"{{{{/* {HEADER} */}}}}\n{path.read_text(encoding='utf-8')}"


def _groups(group: AlertGroup, fleet: Fleet, deployment: Deployment) -> Iterator[dict[str, object]]:
    """Yield a group of Prometheus for each interval; the others than the group's own have it in their name."""
    for interval, rules in group.by_interval(fleet).items():
        own = interval == group.interval
        yield {
            "name": f"alerts-{group.name}" if own else f"alerts-{group.name}-{duration_text(interval)}",
            "interval": deployment.scale.text(interval),
            "rules": [_rule(alert, rule, fleet, deployment) for alert, rule in rules],
        }


def _rule(alert: Alert, rule: AlertRule, fleet: Fleet, deployment: Deployment) -> dict[str, object]:
    return {
        "alert": alert.name,
        "expr": rule.expression(fleet).text(deployment.scale),
        **({"for": deployment.scale.text(rule.delay)} if rule.delay else {}),
        **({"keep_firing_for": deployment.scale.text(rule.keep)} if rule.keep else {}),
        "labels": {"severity": rule.severity.value, **({SLO.name: alert.slo} if alert.slo else {})},
        "annotations": dict(_annotations(alert, rule, fleet, deployment.addresses)),
    }


def _annotations(alert: Alert, rule: AlertRule, fleet: Fleet, addresses: Addresses) -> Iterator[tuple[str, str]]:
    yield "summary", alert.summary
    yield "description", (rule.description or alert.description)(fleet)
    yield "runbook_url", f"{addresses.runbooks}/{alert.name}"
    if addresses.boards is None:
        return
    choice = f"?var-{MODEL.name}={{{{ . | urlquery }}}}"
    labels = rule.expression(fleet).labels
    about_a_model = f"{{{{ with $labels.{MODEL.name} }}}}{choice}{{{{ end }}}}" if MODEL.name in labels else ""
    yield "dashboard_url", f"{addresses.boards}/d/{alert.board}{about_a_model}"
