"""Receivers: who is told, as Alertmanager's receiver configurations.

In: the `oncall` section of fleet.yml. Out: plain mappings. Secrets stay in their files.

Every option written here exists in Alertmanager 0.25 (routing_key_file is the youngest).
"""

from collections.abc import Sequence

from alerts.model import Severity
from exporter.oncall import Oncall, PagerDuty, Receiver, Slack, Webhook
from prometheus.deployment import Addresses

__all__ = ["receivers"]

_TITLE = '{{ template "servewatch.title" . }}'
_BOARD = '{{ template "servewatch.board" . }}'
_TEXT = '{{ template "servewatch.text" . }}'

# Newer Alertmanagers read each detail as YAML and would make a mapping of our text, for its colons. A first line
# without one makes it no YAML, so it stays as it is.
_DETAILS = f"{{{{ .Alerts.Firing | len }}}} firing, {{{{ .Alerts.Resolved | len }}}} resolved\n{_TEXT}"


def receivers(oncall: Oncall, addresses: Addresses) -> list[dict[str, object]]:
    """Build one receiver per severity, named after it; without `oncall` the simulator's phone is told everything.

    What is for nobody, as a note always is, has an empty receiver: an address where nobody listens would fail for ever,
    and LLMNotificationsFailing with it, so that a page that is lost would go unseen.
    """
    chosen = {Severity.PAGE: oncall.page, Severity.TICKET: oncall.ticket, Severity.HEARTBEAT: oncall.heartbeat}
    if oncall.is_empty:
        chosen = {severity: (_phone(severity, addresses),) for severity in chosen}
    return [*(_receiver(severity, who) for severity, who in chosen.items()), _receiver(Severity.NOTE, ())]


def _phone(severity: Severity, addresses: Addresses) -> Webhook:
    return Webhook(url=f"http://{addresses.phone}/alertmanager/{severity.value}")


def _receiver(severity: Severity, who: Sequence[Receiver]) -> dict[str, object]:
    configs: dict[str, list[dict[str, object]]] = {}
    for receiver in who:
        kind, settings = _config(receiver)
        # A heartbeat that stops is the message; "resolved" would only confuse whoever counts beats.
        configs.setdefault(kind, []).append({"send_resolved": severity is not Severity.HEARTBEAT, **settings})
    return {"name": severity.value, **configs}


def _config(receiver: Receiver) -> tuple[str, dict[str, object]]:
    match receiver:
        case PagerDuty():
            return "pagerduty_configs", _pagerduty(receiver)
        case Slack():
            return "slack_configs", _slack(receiver)
        case Webhook():
            return "webhook_configs", {"url": receiver.url}


def _pagerduty(receiver: PagerDuty) -> dict[str, object]:
    return {
        "routing_key_file": str(receiver.routing_key_file.absolute()),
        "description": _TITLE,
        "client": "Servewatch",
        "client_url": _BOARD,
        "details": {"alerts": _DETAILS},
    }


def _slack(receiver: Slack) -> dict[str, object]:
    return {
        "api_url_file": str(receiver.api_url_file.absolute()),
        "channel": receiver.channel,
        "title": _TITLE,
        "title_link": _BOARD,
        "text": _TEXT,
        "fallback": _TITLE,
    }
