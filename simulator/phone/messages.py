"""Alertmanager's webhook payload (version 4) in, messages out, or a sentence that says what is wrong with it."""

from collections.abc import Mapping
from dataclasses import dataclass

RECEIVERS = ("page", "ticket", "heartbeat")
_STATES = ("firing", "resolved")


class PayloadError(Exception):
    """A body that is not Alertmanager's; the message says where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One alert as it arrived on the phone; times are as RFC 3339 has them, `received_at` in Unix seconds."""

    received_at: float
    receiver: str
    status: str
    alertname: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    starts_at: str
    ends_at: str
    fingerprint: str
    group_key: str

    @property
    def identity(self) -> tuple[str, ...]:
        """Tell a repetition from news: Alertmanager sends the same alert again and again while it lasts."""
        return (self.receiver, self.group_key, self.fingerprint, self.status, self.starts_at)


def parse_webhook(document: object, *, receiver: str, received_at: float) -> list[Message]:
    """Turn one notification into its messages."""
    body = _mapping(document, "the body")
    alerts = body.get("alerts")
    if not isinstance(alerts, list):
        raise PayloadError(f"alerts: expected a list, got {_kind(alerts)}")
    group_key = _text(body, "groupKey", "groupKey")
    return [
        _message(_mapping(alert, f"alerts[{index}]"), f"alerts[{index}]", group_key, receiver, received_at)
        for index, alert in enumerate(alerts)
    ]


def parse_stored(document: object) -> Message:
    """Read a message as `stored` wrote it."""
    body = _mapping(document, "the line")
    received_at = body.get("received_at")
    if isinstance(received_at, bool) or not isinstance(received_at, int | float):
        raise PayloadError(f"received_at: expected a number, got {_kind(received_at)}")
    return Message(
        received_at=float(received_at),
        receiver=_text(body, "receiver", "receiver"),
        status=_text(body, "status", "status"),
        alertname=_text(body, "alertname", "alertname"),
        labels=_texts(body, "labels", "labels"),
        annotations=_texts(body, "annotations", "annotations"),
        starts_at=_text(body, "starts_at", "starts_at"),
        ends_at=_text(body, "ends_at", "ends_at"),
        fingerprint=_text(body, "fingerprint", "fingerprint"),
        group_key=_text(body, "group_key", "group_key"),
    )


def stored(message: Message) -> dict[str, object]:
    """Give a message as JSON has it, in the store and in the API."""
    return {
        "received_at": message.received_at,
        "receiver": message.receiver,
        "status": message.status,
        "alertname": message.alertname,
        "labels": dict(message.labels),
        "annotations": dict(message.annotations),
        "starts_at": message.starts_at,
        "ends_at": message.ends_at,
        "fingerprint": message.fingerprint,
        "group_key": message.group_key,
    }


def _message(alert: Mapping[object, object], where: str, group_key: str, receiver: str, received_at: float) -> Message:
    status = _text(alert, "status", f"{where}.status")
    if status not in _STATES:
        raise PayloadError(f"{where}.status: expected one of {', '.join(_STATES)}, got {status!r}")
    labels = _texts(alert, "labels", f"{where}.labels")
    return Message(
        received_at=received_at,
        receiver=receiver,
        status=status,
        alertname=labels.get("alertname", "(no name)"),
        labels=labels,
        annotations=_texts(alert, "annotations", f"{where}.annotations"),
        starts_at=_text(alert, "startsAt", f"{where}.startsAt"),
        ends_at=_text(alert, "endsAt", f"{where}.endsAt") if status == "resolved" else "",
        fingerprint=_text(alert, "fingerprint", f"{where}.fingerprint"),
        group_key=group_key,
    )


def _mapping(value: object, where: str) -> Mapping[object, object]:
    if not isinstance(value, Mapping):
        raise PayloadError(f"{where}: expected an object, got {_kind(value)}")
    return value


def _text(body: Mapping[object, object], key: str, where: str) -> str:
    value = body.get(key)
    if not isinstance(value, str):
        raise PayloadError(f"{where}: expected text, got {_kind(value)}")
    return value


def _texts(body: Mapping[object, object], key: str, where: str) -> dict[str, str]:
    value = body.get(key)
    if not isinstance(value, Mapping):
        raise PayloadError(f"{where}: expected an object, got {_kind(value)}")
    for name, text in value.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise PayloadError(f"{where}.{name}: expected text, got {_kind(text)}")
    return dict(value)


def _kind(value: object) -> str:
    return "nothing" if value is None else type(value).__name__
