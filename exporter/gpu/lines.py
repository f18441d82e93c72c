"""Lines: a page that has lines nobody can read -> the page without them, and what they were about. Pure.

Exporters of cards write words where a number should be: N/A, [Not Supported], ERR!. One such line says nothing about
the others; an engine's page is another matter, of which half is worse than none.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from exporter import textformat
from exporter.entry import Mark, Sample
from exporter.failures import ScrapeError
from exporter.numbers import number
from exporter.tame import shortened

__all__ = ["Unreadable", "readable"]

_LONGEST_WORD = 40
_BEGINNING = re.compile(r"[^\s{]+(?:\{.*\})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A line without a usable number: its series as far as it can be read, and what stands in the number's place."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    word: str = ""


def readable(body: bytes) -> tuple[bytes, tuple[Unreadable, ...]]:
    """Split a page in the text format into a page that can be read and the samples that cannot."""
    kept: list[str] = []
    left_out: list[Unreadable] = []
    for line in body.decode("utf-8", "surrogateescape").replace("\r", "").split("\n"):
        if line.startswith("#"):
            continue  # says nothing about a card, and may be what is wrong
        trouble = _trouble(line)
        if trouble is None:
            kept.append(line)
        else:
            left_out.append(trouble)
    return "\n".join(kept).encode("utf-8", "surrogateescape"), tuple(left_out)


def _trouble(line: str) -> Unreadable | None:
    """Answer what is wrong with a line; None where it can be read."""
    entry = _entry(line)
    if isinstance(entry, Sample):
        if number(entry.value) is not None:
            return None
        return Unreadable(name=entry.name, labels=entry.labels, word=shortened(entry.value, _LONGEST_WORD))
    if entry is Mark.COMMENT:
        return None
    beginning = _BEGINNING.match(line)
    series = _entry(f"{beginning[0]} 0") if beginning else None
    word = shortened(line[beginning.end() :].strip() if beginning else line, _LONGEST_WORD)
    if isinstance(series, Sample):
        return Unreadable(name=series.name, labels=series.labels, word=word)
    return Unreadable(name=shortened(line, _LONGEST_WORD))


def _entry(line: str) -> Sample | Mark | None:
    try:
        return textformat.read([line], 0)
    except ScrapeError:
        return None
