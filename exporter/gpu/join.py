"""Join: which card serves which replica. In: replicas, readings. Out: claims, from fleet.yml or processes. Pure."""

import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from exporter.address import server
from exporter.fleet import Replica
from exporter.gpu.reading import Card, Reading

__all__ = ["Claim", "Stranger", "claims", "strangers"]

_LOCAL = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0", socket.gethostname().lower()})  # noqa: S104 - compared with, not bound to
_FROM_MAKER = re.compile(r"(?:GPU|MIG)-.+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]+")
"""A uuid or a serial number. Other names are of a host, and a number behind one is the card's index there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A replica uses a card; `memory` is what its processes hold there, in bytes, where that is known."""

    replica: str
    model: str
    card: Card
    memory: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stranger:
    """A name in a replica's `gpus` that no source knows; `of_card` where it knows the card and not that part of it."""

    replica: str
    name: str
    of_card: bool


def claims(
    replicas: Iterable[Replica], readings: Iterable[Reading], model_of: Callable[[str], str]
) -> tuple[Claim, ...]:
    """Join replicas and cards. What fleet.yml says of a replica holds, whether its cards are there or not."""
    read = list(readings)
    known = _known(read)
    found: dict[tuple[str, Card], Claim] = {}
    for replica in replicas:
        held = _held(replica, read)
        cards = [_card(name, known) for name in replica.gpus] or list(held)
        for card in cards:
            claim = Claim(replica=replica.name, model=model_of(replica.name), card=card, memory=held.get(card))
            found.setdefault((replica.name, card), claim)
    return tuple(found.values())


def strangers(replicas: Iterable[Replica], readings: Iterable[Reading]) -> Iterator[Stranger]:
    """Find the names in fleet.yml that stand for no card that is there, or was."""
    known = _known(readings)
    cards = frozenset(known.values())
    for replica in replicas:
        for name in replica.gpus:
            card = _card(name, known)
            if card not in cards:
                of_card = bool(card.partition) and Card(gpu=card.gpu) in cards
                yield Stranger(replica=replica.name, name=name, of_card=of_card)


def _known(readings: Iterable[Reading]) -> dict[str, Card]:
    """Answer every name by which a card that is there can be called."""
    known: dict[str, Card] = {}
    for reading in readings:
        card = reading.card
        known[f"{card.gpu}/{card.partition}" if card.partition else card.gpu] = card
        if reading.alias:
            known[reading.alias] = card
    return known


def _card(name: str, known: Mapping[str, Card]) -> Card:
    """Read a name of fleet.yml: a uuid, uuid/instance, the uuid of a MIG instance, or host/index."""
    gpu, _, partition = name.rpartition("/")
    if name not in known and partition and (gpu in known or _FROM_MAKER.fullmatch(gpu)):
        return Card(gpu=gpu, partition=partition)
    return known.get(name) or Card(gpu=name)


def _held(replica: Replica, readings: Iterable[Reading]) -> dict[Card, float | None]:
    """Find the cards on which processes of a local replica hold memory, and how much."""
    if (urlsplit(replica.url).hostname or "") not in _LOCAL:
        return {}
    _, port = server(replica.url)
    held: dict[Card, float | None] = {}
    for reading in readings:
        memory = [hold.memory for hold in reading.holds if port in hold.ports]
        if memory:
            known = [each for each in memory if each is not None]
            held[reading.card] = sum(known) if known and reading.up else None
    return held
