"""Parse: the bytes of an engine's page -> series and values, with the verdict that Prometheus' reader would give.

In: a page in the text format 0.0.4, or OpenMetrics where the engine insists. Out: a `Page`, or ScrapeError(parse).
Grammar and verdicts follow model/textparse/promlex.l of Prometheus, with these exceptions on purpose: a sample whose
value is missing or is no number, or whose label value is not UTF-8, is left out and counted instead of costing the
page; CRLF and a byte-order mark are read as what they stand for.

Almost every line of a page begins as it did last time, so the parser remembers line beginnings: a known beginning costs
one dictionary look-up, and only an unknown one is read by the grammar.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import compress

from exporter.failures import Reason, ScrapeError
from exporter.numbers import number, numbers

__all__ = ["Page", "Parser", "Series"]

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_SPACE = re.compile(r"[ \t]*")
_BLANKS = re.compile(r"[ \t]+")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*,?[ \t]*')
_OPEN_LABEL = re.compile(r'[a-zA-Z_][a-zA-Z0-9_]*[ \t]*=[ \t]*"(?:[^"\\]|\\.)*\\?\Z')
_ESCAPE = re.compile(r'\\([\\"n])')
_META = re.compile(r"#[ \t]+(HELP|TYPE)[ \t]+(.*)", re.DOTALL)
_TIMESTAMP = re.compile(r"[0-9]+")
_TEXT_TYPES = frozenset({"counter", "gauge", "histogram", "summary", "untyped"})
_OPENMETRICS_TYPES = _TEXT_TYPES | {"gaugehistogram", "stateset", "info", "unknown"}
_REMEMBERED = 100_000  # line beginnings; a fleet of one engine and model needs some hundreds


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series:
    """A series on a page. One object per identity and parser, so that pages compare by the objects they hold."""

    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a page holds: `values[i]` belongs to `series[i]`; each series once. `dropped` samples were unusable."""

    series: tuple[Series, ...]
    values: tuple[float, ...]
    dropped: int = 0


class Parser:
    """Reads pages; remembers series and line beginnings over pages and replicas."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, frozenset[tuple[str, str]]], Series] = {}
        self._beginnings: dict[str, Series] = {}
        self._comments: set[str] = set()

    def series(self, name: str, labels: Mapping[str, str]) -> Series:
        """Return the one object for this identity; an empty label is no label."""
        present = {key: value for key, value in labels.items() if value}
        identity = (name, frozenset(present.items()))
        found = self._series.get(identity)
        if found is None:
            found = self._series[identity] = Series(name=name, labels=present)
        return found

    def parse(self, body: bytes, *, openmetrics: bool = False) -> Page:
        """Read a page, or raise ScrapeError(parse) where Prometheus would refuse it."""
        self._forget_when_full()
        text = _decoded(body)
        if openmetrics and not text.rstrip("\n").endswith("# EOF"):
            raise ScrapeError(Reason.PARSE, "an OpenMetrics page must end with # EOF; it was cut, or is mislabelled")
        types = _OPENMETRICS_TYPES if openmetrics else _TEXT_TYPES
        series: list[Series] = []
        texts: list[str] = []
        dropped = 0
        lines = text.split("\n")
        beginnings, comments = self._beginnings, self._comments
        skip = 0
        for index, line in enumerate(lines):
            beginning, _, value = line.rpartition(" ")
            known = beginnings.get(beginning)
            if known is not None and not skip:
                series.append(known)
                texts.append(value)
            elif skip:
                skip -= 1
            elif line in comments or not line:
                continue
            elif line.lstrip(" \t")[:1] in {"#", ""}:
                self._comment(line, index, types)
            else:
                found, value, skip = self._sample(lines, index, openmetrics=openmetrics)
                if found is None:
                    dropped += 1
                else:
                    series.append(found)
                    texts.append(value)
        return _page(series, texts, dropped)

    def _forget_when_full(self) -> None:
        """Start anew when label values without limit have filled the memory; pages are then read by the grammar."""
        if max(len(self._beginnings), len(self._comments), len(self._series)) > _REMEMBERED:
            self._series.clear()
            self._beginnings.clear()
            self._comments.clear()

    def _comment(self, line: str, index: int, types: frozenset[str]) -> None:
        match = _META.fullmatch(line.lstrip(" \t"))
        if match is not None:
            kind, rest = match[1], match[2]
            name = _NAME.match(rest)
            if name is None:
                raise _refusal(index, f"expected a metric name after {kind}", rest)
            if kind == "TYPE" and rest[name.end() + 1 :] not in types:
                raise _refusal(index, f"expected one of {', '.join(sorted(types))}", rest[name.end() + 1 :])
        self._comments.add(line)

    def _sample(self, lines: list[str], index: int, *, openmetrics: bool) -> tuple[Series | None, str, int]:
        """Read one sample by the grammar.

        Return its series (None where the sample has to be left out), its value, and how many further lines it took:
        a label value may hold line breaks.
        """
        text, labels, position, taken = _identity(lines, index)
        name = labels.pop("__name__")
        rest = text[position:]
        words = _BLANKS.split(rest.strip(" \t"))
        if not words[0]:
            return None, "", taken
        if "{" in words[0]:
            raise _refusal(index, "expected a value after the metric", rest)
        if not _ends_sample(words[1:], openmetrics=openmetrics):
            raise _refusal(index, "expected a timestamp or the end of the line after the value", rest)
        if any(not value.isascii() and _not_utf8(value) for value in labels.values()):
            return None, "", taken
        found = self.series(name, labels)
        if not taken and len(words) == 1 and text.endswith(f" {words[0]}"):
            self._beginnings[text[: -len(words[0]) - 1]] = found
        return found, words[0], taken


def _identity(lines: list[str], index: int) -> tuple[str, dict[str, str], int, int]:
    """Read name and labels from a line, and from the lines after it while a label value is open."""
    text = lines[index]
    start = _end(_SPACE, text, 0)
    name = _NAME.match(text, start)
    if name is None:
        raise _refusal(index, "expected a metric name", text)
    labels = {"__name__": name[0]}
    position = _end(_SPACE, text, name.end())
    taken = 0
    if text[position : position + 1] == "{":
        position = _end(_SPACE, text, position + 1)
        while text[position : position + 1] != "}":
            match = _LABEL.match(text, position)
            while match is None and _OPEN_LABEL.match(text, position) and index + taken + 1 < len(lines):
                more = lines[index + taken + 1 : index + 2 * taken + 2]  # twice as many each time: linear in the value
                taken += len(more)
                text = "\n".join([text, *more])
                match = _LABEL.match(text, position)
            if match is None:
                raise _refusal(index, 'expected a label such as name="value"', text[position:])
            if match[1] in labels:
                raise _refusal(index, f"label {match[1]!r} is given twice", text)
            labels[match[1]] = _ESCAPE.sub(_unescaped, match[2])
            position = match.end()
        position += 1
    if taken:
        end = text.find("\n", position)
        text = text if end < 0 else text[:end]
    return text, labels, position, text.count("\n")


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


def _ends_sample(words: list[str], *, openmetrics: bool) -> bool:
    """Tell whether what follows a value is nothing, a timestamp, or (OpenMetrics) an exemplar."""
    if words and openmetrics:
        return number(words[0]) is not None or words[0] == "#"
    return not words or (len(words) == 1 and _TIMESTAMP.fullmatch(words[0]) is not None)


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]


def _not_utf8(text: str) -> bool:
    return any("\udc80" <= character <= "\udcff" for character in text)


def _decoded(body: bytes) -> str:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = body.decode("utf-8", "surrogateescape")
    return text.replace("\r\n", "\n") if "\r\n" in text else text


def _page(series: list[Series], texts: list[str], dropped: int) -> Page:
    values = numbers(texts)
    if values is None:
        each = [number(text) for text in texts]
        good = [value is not None for value in each]
        dropped += good.count(False)
        series = list(compress(series, good))
        values = [value for value in each if value is not None]
    if len(set(series)) != len(series):
        series, values = _first_of_each(series, values)
    return Page(series=tuple(series), values=tuple(values), dropped=dropped)


def _first_of_each(series: Iterable[Series], values: Iterable[float]) -> tuple[list[Series], list[float]]:
    """Keep the first sample of each series, as Prometheus does with a series that a page holds twice."""
    first: dict[Series, float] = {}
    for one, value in zip(series, values, strict=True):
        first.setdefault(one, value)
    return list(first), list(first.values())


def _refusal(index: int, expected: str, got: str) -> ScrapeError:
    shown = ascii(got[:60])
    return ScrapeError(Reason.PARSE, f"line {index + 1} of the page: {expected}, got {shown}")
