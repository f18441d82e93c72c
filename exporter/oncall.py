"""The `oncall` part of fleet.yml -> receivers, one dataclass per kind. Secrets only as paths of files.

Whoever writes the section has to say who is paged. Tickets and the heartbeat may be nobody's; `gaps` says so.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from exporter.document import Node

__all__ = ["Oncall", "PagerDuty", "Receiver", "Slack", "Webhook", "oncall"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PagerDuty:
    """PagerDuty, Events API v2; the file holds the integration's routing key."""

    routing_key_file: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Slack:
    """A Slack channel; the file holds the incoming-webhook address."""

    api_url_file: Path
    channel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Any HTTP endpoint that takes Alertmanager's JSON; `url` is in the clear, so it must hold no secret."""

    url: str


Receiver = PagerDuty | Slack | Webhook


@dataclass(frozen=True, slots=True, kw_only=True)
class Oncall:
    """Who hears of what. An empty tuple means nobody; where all are empty, the simulator's phone hears everything."""

    page: tuple[Receiver, ...] = ()
    ticket: tuple[Receiver, ...] = ()
    heartbeat: tuple[Receiver, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Tell whether fleet.yml names nobody at all, so that the simulator's phone has to listen."""
        return not (self.page or self.ticket or self.heartbeat)

    def gaps(self) -> tuple[str, ...]:
        """Say in a sentence each what nobody hears of, though somebody hears of something."""
        if self.is_empty:
            return ()
        return tuple(sentence for key, sentence in _GAPS.items() if not getattr(self, key))


_PAGED = "page: [{pagerduty: {routing_key_file: /run/secrets/pagerduty}}]"
_GAPS = {
    "ticket": "oncall: no ticket: nobody is told of tickets, they only stand in Alertmanager; add for example"
    ' ticket: [{slack: {api_url_file: /run/secrets/slack, channel: "#llm-ops"}}]',
    "heartbeat": "oncall: no heartbeat: nobody will notice when monitoring as a whole stops; add for example"
    ' heartbeat: [{webhook: {url: "https://deadman.example/ping"}}]',
}


def _pagerduty(node: Node, base: Path) -> PagerDuty:
    fields = node.mapping(required=("routing_key_file",))
    return PagerDuty(routing_key_file=fields["routing_key_file"].existing_file(base))


def _slack(node: Node, base: Path) -> Slack:
    fields = node.mapping(required=("api_url_file", "channel"))
    channel = fields["channel"].text("a channel such as '#llm-ops'")
    return Slack(api_url_file=fields["api_url_file"].existing_file(base), channel=channel)


def _webhook(node: Node, base: Path) -> Webhook:  # noqa: ARG001 - one signature for every kind
    return Webhook(url=node.mapping(required=("url",))["url"].link())


_KINDS: dict[str, Callable[[Node, Path], Receiver]] = {"pagerduty": _pagerduty, "slack": _slack, "webhook": _webhook}


def _receivers(node: Node, base: Path) -> tuple[Receiver, ...]:
    found = []
    for item in node.items():
        kinds = item.mapping(optional=tuple(_KINDS))
        if len(kinds) != 1:
            item.refuse(f"exactly one of: {', '.join(_KINDS)}")
        [(kind, settings)] = kinds.items()
        found.append(_KINDS[kind](settings, base))
    return tuple(found)


def oncall(node: Node, base: Path) -> Oncall:
    """Read the `oncall` section; relative secret files start at `base`.

    Nobody listens at the simulator's phone beside a fleet of one's own, so pages need a receiver that is named.
    """
    fields = node.mapping(optional=("page", "ticket", "heartbeat"))
    heard = Oncall(**{key: _receivers(value, base) for key, value in fields.items()})
    if not heard.page:
        fields.get("page", node).refuse(f"who is paged, for example {_PAGED}")
    return heard
