"""Remarks: names in `gpus` of fleet.yml that stand for no card. In: what the sources told. Out: sentences. Pure."""

from collections.abc import Iterable, Mapping

from exporter.cards import Gpus
from exporter.gpu.join import Stranger
from exporter.gpu.reading import Failure
from exporter.gpu.render import Told

__all__ = ["WITHOUT_CARDS", "by_replica", "comments"]

WITHOUT_CARDS = frozenset({Failure.NO_LIBRARY, Failure.NO_DRIVER, Failure.NO_GPU})
"""What a driver says on a host without cards."""


def comments(strangers: Iterable[Stranger], told: Iterable[Told], gpus: Gpus) -> tuple[str, ...]:
    """Write a sentence for each name, for the page of the cards."""
    silent = _silent(told)
    return tuple(f"fleet.yml: replica {one.replica}: {_sentence(one, silent, gpus)}" for one in strangers)


def by_replica(strangers: Iterable[Stranger], told: Iterable[Told], gpus: Gpus) -> Mapping[str, tuple[str, ...]]:
    """Write the same by replica; nothing where other exporters may show the card, since we cannot tell."""
    if gpus.exporters:
        return {}
    silent = _silent(told)
    found: dict[str, tuple[str, ...]] = {}
    for one in strangers:
        found[one.replica] = (*found.get(one.replica, ()), _sentence(one, silent, gpus))
    return found


def _silent(told: Iterable[Told]) -> tuple[str, ...]:
    """Name the sources that may have the card and cannot tell."""
    return tuple(each.title for each in told if each.failure is not None and each.failure not in WITHOUT_CARDS)


def _sentence(stranger: Stranger, silent: tuple[str, ...], gpus: Gpus) -> str:
    if stranger.of_card:
        card, _, part = stranger.name.rpartition("/")
        return f"{card} has no instance {part} now: correct gpus in fleet.yml, or divide the card"
    if gpus.exporters:
        return f"no source of this exporter shows {stranger.name}; one under gpu.exporters has to"
    if silent:
        return f"no source shows {stranger.name}; {', '.join(silent)} cannot tell now"
    return f"no source shows {stranger.name}: correct gpus in fleet.yml, or name under gpu who shows the card"
