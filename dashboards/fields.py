"""What a value looks like: thresholds, words, columns, links. In: plain values; out: JSON of Grafana's field options.

A value that is missing is said in words, in a neutral colour: an idle or mute service is not a broken one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "AMBER",
    "BLUE",
    "CANNOT_TELL",
    "EITHER",
    "GREEN",
    "NEUTRAL",
    "NO_TRAFFIC",
    "RED",
    "Column",
    "Look",
    "dashed",
    "link",
    "steps",
    "wording",
]

Json = dict[str, Any]

GREEN, AMBER, RED, BLUE, NEUTRAL = "green", "orange", "red", "blue", "text"

NO_TRAFFIC = "no traffic"
CANNOT_TELL = "this engine cannot tell"
EITHER = f"{NO_TRAFFIC}, or {CANNOT_TELL}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How a value is shown. `colours` are the base colour, then (value, colour) steps upwards."""

    unit: str
    empty: str
    decimals: int | None = None
    base: str = NEUTRAL
    colours: Sequence[tuple[float, str]] = ()
    words: Mapping[float, tuple[str, str]] = field(default_factory=dict)

    def defaults(self) -> Json:
        """Return the field options that say so."""
        known = {"decimals": self.decimals} if self.decimals is not None else {}
        return {
            "unit": self.unit,
            "noValue": self.empty,
            "mappings": wording(self.words, self.empty),
            "thresholds": {"mode": "absolute", "steps": steps(self.base, self.colours)},
            **known,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table: a label of the series, or the value of query `ref`."""

    source: str
    title: str
    look: Look
    width: int | None = None
    url: str | None = None
    hint: str = ""

    def override(self) -> Json:
        """Return the field override of this column; it goes by the title that the column was given."""
        properties = [{"id": key, "value": value} for key, value in self.look.defaults().items()]
        if self.look.words or self.look.colours:
            properties.append({"id": "custom.cellOptions", "value": {"type": "color-text"}})
        if self.width is not None:
            properties.append({"id": "custom.width", "value": self.width})
        if self.url is not None:
            properties.append({"id": "links", "value": [link(self.hint, self.url)]})
        return {"matcher": {"id": "byName", "options": self.title}, "properties": properties}


def steps(base: str, colours: Sequence[tuple[float, str]]) -> list[Json]:
    """Return threshold steps upwards from minus infinity, which JSON spells null."""
    values = [value for value, _ in colours]
    if values != sorted(set(values)):
        raise ValueError(f"thresholds must ascend, got {values}; sort them")
    return [{"color": base, "value": None}, *({"color": colour, "value": value} for value, colour in colours)]


def wording(words: Mapping[float, tuple[str, str]], empty: str) -> list[Json]:
    """Return value mappings: the words for some values, and `empty` for null and NaN."""
    result = {"text": empty, "color": NEUTRAL, "index": 0}
    nothing = {"type": "special", "options": {"match": "null+nan", "result": result}}
    named = {
        f"{value:g}": {"text": text, "color": colour, "index": index}
        for index, (value, (text, colour)) in enumerate(words.items(), start=1)
    }
    return [nothing, *([{"type": "value", "options": named}] if named else [])]


def link(title: str, url: str) -> Json:
    """Return a data link; whatever comes from a label has to be encoded, or `org/a&b` filters on `org/a`."""
    for part in url.split("${")[1:]:
        variable = part.partition("}")[0]
        if variable.startswith("__data.fields") and not variable.endswith(":percentencode"):
            raise ValueError(f"link {url!r}: {variable} goes into a URL unencoded; write {variable}:percentencode")
    return {"title": title, "url": url, "targetBlank": False}


def dashed(ref: str, colour: str) -> Json:
    """Return the override that draws query `ref` as a thin dashed line: a promise, not a measurement."""
    return {
        "matcher": {"id": "byFrameRefID", "options": ref},
        "properties": [
            {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [8, 8]}},
            {"id": "custom.lineWidth", "value": 1},
            {"id": "custom.fillOpacity", "value": 0},
            {"id": "color", "value": {"mode": "fixed", "fixedColor": colour}},
        ],
    }
