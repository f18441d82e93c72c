"""Join: which card serves which replica. In: replicas, readings. Out: claims, from fleet.yml or processes. Pure."""

import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from exporter.fleet import Replica
from exporter.gpu.reading import Card, Reading

__all__ = ["Claim", "claims"]

_LOCAL = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0", socket.gethostname().lower()})  # noqa: S104 - compared with, not bound to
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A replica uses a card; `memory` is what its processes hold there, in bytes, where that is known."""

    replica: str
    model: str
    card: Card
    memory: float | None = None


def claims(
    replicas: Iterable[Replica], readings: Iterable[Reading], model_of: Callable[[str], str]
) -> tuple[Claim, ...]:
    """Join replicas and cards. What fleet.yml says of a replica holds, whether its cards are there or not."""
    read = list(readings)
    aliases = {reading.alias: reading.card for reading in read if reading.alias}
    found: dict[tuple[str, Card], Claim] = {}
    for replica in replicas:
        held = _held(replica, read)
        cards = [_card(name, aliases) for name in replica.gpus] or list(held)
        for card in cards:
            claim = Claim(replica=replica.name, model=model_of(replica.name), card=card, memory=held.get(card))
            found.setdefault((replica.name, card), claim)
    return tuple(found.values())


def _card(name: str, aliases: Mapping[str, Card]) -> Card:
    """Read a name of fleet.yml: a uuid, uuid/instance, or the uuid of a MIG instance."""
    gpu, _, partition = name.partition("/")
    return aliases.get(name) or Card(gpu=gpu, partition=partition)


def _held(replica: Replica, readings: Iterable[Reading]) -> dict[Card, float | None]:
    """Find the cards on which processes of a local replica hold memory, and how much."""
    parts = urlsplit(replica.url)
    if (parts.hostname or "") not in _LOCAL:
        return {}
    port = parts.port or _PORTS[parts.scheme]
    held: dict[Card, float | None] = {}
    for reading in readings:
        memory = [hold.memory for hold in reading.holds if port in hold.ports]
        if memory:
            known = [each for each in memory if each is not None]
            held[reading.card] = sum(known) if known and reading.up else None
    return held
