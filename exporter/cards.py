"""Cards: the GPU parts of fleet.yml -> who tells about the cards, and what a replica's cards are called.

A card is named by what its maker wrote on it, whole: that name stays over reboots and is the same for everybody. An
index does not and is not: CUDA counts the fastest card first, nvidia-smi the lowest PCI address.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from exporter import catalogue
from exporter.address import guarded, origin, server
from exporter.document import FleetError, Node

__all__ = ["NVIDIA", "CardPage", "Gpus", "card_names", "gpus"]

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
NVIDIA = re.compile(rf"(?:GPU|MIG)-{_UUID}(?:/[0-9]{{1,3}})?|MIG-GPU-{_UUID}(?:/[0-9]{{1,3}}){{2}}")
"""The uuid of a card with or without an instance of it, or of an instance; the last form is that of old drivers."""
_NVIDIA_PREFIX = re.compile(r"gpu-|mig-(?:gpu-)?", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z0-9._:-]{4,80}(?:/[0-9]{1,3}){0,2}")
_INDEX = re.compile(
    r"(?:(?:cuda|hip|rocm|gpu|nvidia|card|index|device|render[a-z]*)?[:_# -]?[0-9]{1,3}|/dev/.*)", re.IGNORECASE
)
_LARGEST_INDEX = 999
_EXPECTED = "a card's uuid such as GPU-5c7f0a12-…, with /3 behind it for its MIG instance 3"
_WHOLE = (
    "the whole uuid, GPU- and 36 characters as `nvidia-smi -L` and /gpu print it, with /3 behind it for MIG instance 3"
)
_NO_INDEX = (
    "the card's uuid, since its index is another one for CUDA than for nvidia-smi, and after a reboot;"
    " `nvidia-smi -L` and /gpu print it"
)
_IN_QUOTES = "a serial number in quotes, or YAML takes it for a number"


@dataclass(frozen=True, slots=True, kw_only=True)
class CardPage:
    """Another exporter's page of cards, guarded or not, as a replica is."""

    url: str
    api_key_file: Path | None = None
    ca_file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpus:
    """Who tells about the cards: the driver of this host, pages of other exporters (by source), other Servewatches."""

    nvml: bool = True
    pages: Mapping[str, tuple[CardPage, ...]] = field(default_factory=dict)
    exporters: tuple[str, ...] = ()


def gpus(node: Node, base: Path) -> Gpus:
    """Read the section `gpu`."""
    sources = tuple(source for source in catalogue.GPU_SOURCE.values if source != "nvml")
    parts = node.mapping(optional=("nvml", *sources, "exporters"))
    lists = {key: tuple(parts[key].items()) for key in (*sources, "exporters") if key in parts}
    pages = {key: tuple(_page(each, base) for each in lists[key]) for key in sources if key in lists}
    others = tuple(map(origin, lists.get("exporters", ())))
    urls = [page.url for of_source in pages.values() for page in of_source] + list(others)
    _refuse_twice([node for nodes in lists.values() for node in nodes], urls)
    return Gpus(nvml=parts["nvml"].truth() if "nvml" in parts else True, pages=pages, exporters=others)


def card_names(node: Node) -> tuple[str, ...]:
    """Read the cards of a replica; raise FleetError for a name that could mean another card, or one given twice."""
    names: dict[str, Node] = {}
    for each in node.items():
        name = _name(each)
        if name in names:
            raise FleetError(f"{each.place}: {each.value!r} is already {names[name].path}; name a card once")
        names[name] = each
    return tuple(names)


def _page(node: Node, base: Path) -> CardPage:
    if not isinstance(node.value, dict):
        return CardPage(url=origin(node))
    parts = node.mapping(required=("url",), optional=("api_key_file", "tls"))
    url, key, authorities = guarded(parts, base, "page")
    return CardPage(url=url, api_key_file=key, ca_file=authorities)


def _refuse_twice(nodes: list[Node], urls: list[str]) -> None:
    """Refuse a page that is read twice: every card and counter on it would be there twice."""
    seen: dict[tuple[str | None, int], Node] = {}
    for node, url in zip(nodes, urls, strict=True):
        first = seen.setdefault(server(url), node)
        if first is not node:
            raise FleetError(f"{node.place}: {url!r} is already {first.path}; name each address once")


def _name(node: Node) -> str:
    """Read one name; the letters of NVIDIA's uuids become those that NVIDIA writes."""
    if isinstance(node.value, int | float) and not isinstance(node.value, bool):
        node.refuse(_NO_INDEX if 0 <= node.value <= _LARGEST_INDEX else _IN_QUOTES)
    text = node.text(_EXPECTED)
    if _INDEX.fullmatch(text):
        node.refuse(_NO_INDEX)
    prefix = _NVIDIA_PREFIX.match(text)
    if prefix is not None:
        name = prefix[0].upper() + text[prefix.end() :].lower()
        if NVIDIA.fullmatch(name):
            return name
        if prefix[0].isupper() or "/" not in text:  # else it may be a host of that name, and a card by its index there
            node.refuse(_WHOLE)
    if not _NAME.fullmatch(text):
        node.refuse(_EXPECTED)
    return text
