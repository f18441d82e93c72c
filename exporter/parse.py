"""Parse: the bytes of an engine's page -> series and values, with the verdict that Prometheus' reader would give.

In: a page in the text format 0.0.4, or OpenMetrics where the engine insists. Out: a `Page`, or ScrapeError(parse).
Verdicts are those of Prometheus 2.42 (bench/parser_differential.py compares them), with these exceptions on purpose: a
sample whose value is missing or is no number, or whose label value is not UTF-8, is left out and counted instead of
costing the page; CRLF and a byte-order mark are read as what they stand for; a page of too many lines is refused.

Almost every line of a page begins as it did last time, so the parser remembers line beginnings: a known beginning costs
one dictionary look-up, and only an unknown one is read by the grammar. A page all of whose lines are known leaves its
layout, with which pages like it are read at once.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import compress
from sys import intern

from exporter import textformat
from exporter.entry import Mark, Sample
from exporter.failures import Reason, ScrapeError
from exporter.layout import Layout, layout, likeness
from exporter.numbers import number, numbers
from exporter.openmetrics import lines_before_end
from exporter.openmetrics import read as read_openmetrics

__all__ = ["Page", "Parser", "Series"]

_REMEMBERED = 2**24
"""Characters of lines, some 100,000 lines; a fleet of one engine and model needs some hundreds."""
MOST_LINES = 50_000
"""Sixteen ranks of vLLM have 10,000; memory, and the time that others wait for it to be tidied, grow with the lines."""
_CRLF = re.compile(r"\r+\n")  # more than one \r where a page was converted twice
_NO_WORD = frozenset("\t{")
"""A line that begins as a known one and ends in more than a word is another line for the grammar."""
_POINTERS = 16  # bytes that a layout takes for each line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series:
    """A series on a page. One object per identity and parser, so that pages compare by the objects they hold."""

    name: str
    labels: Mapping[str, str]

    @property
    def size(self) -> int:
        """How many characters it takes."""
        return len(self.name) + sum(len(key) + len(value) for key, value in self.labels.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a page holds: `values[i]` belongs to `series[i]`; each series once. `dropped` samples were unusable."""

    series: tuple[Series, ...]
    values: tuple[float, ...]
    dropped: int = 0


@dataclass(slots=True, kw_only=True)
class _Format:
    """A grammar, and the line beginnings, comments and layouts of pages that it has accepted.

    A beginning ends with the blank before the value.
    """

    read: Callable[[list[str], int], Sample | Mark]
    beginnings: dict[str, Series] = field(default_factory=dict)
    comments: set[str] = field(default_factory=set)
    layouts: dict[tuple[int | str, ...], Layout] = field(default_factory=dict)
    size: int = 0

    def known(self, lines: list[str]) -> tuple[list[Series], list[str], int] | None:
        """Answer what `Parser._read` would if every line of the page is known, as on most pages; else None."""
        series: list[Series] = []
        texts: list[str] = []
        add, add_text, find, comments = series.append, texts.append, self.beginnings.get, self.comments
        for line in lines:
            beginning, blank, value = line.rpartition(" ")
            found = find(beginning + blank)
            if found is not None:
                add(found)
                add_text(value)
            elif line not in comments:
                return None
        return series, texts, 0

    def remember(self, beginning: str, series: Series) -> None:
        self.beginnings[intern(beginning)] = series
        self.size += len(beginning)

    def remember_layout(self, lines: list[str], series: list[Series]) -> None:
        """Remember the layout of a page of known lines that holds no series twice."""
        found = layout(lines, self.beginnings) if len(set(series)) == len(series) else None
        if found is not None:
            key = likeness(lines)
            self.size += 0 if key in self.layouts else _POINTERS * len(lines)
            self.layouts[key] = found

    def remember_comment(self, line: str) -> None:
        self.comments.add(intern(line))
        self.size += len(line)

    def forget(self) -> None:
        self.beginnings.clear()
        self.comments.clear()
        self.layouts.clear()
        self.size = 0


class Parser:
    """Reads pages; remembers series and line beginnings over pages and replicas."""

    def __init__(self) -> None:
        """Know nothing yet; `limit` is of the characters that are remembered, and can be changed at any time."""
        self.limit = _REMEMBERED
        self._series: dict[tuple[str, frozenset[tuple[str, str]]], Series] = {}
        self._size = 0
        self._text = _Format(read=textformat.read)
        self._openmetrics = _Format(read=read_openmetrics)

    def series(self, name: str, labels: Mapping[str, str]) -> Series:
        """Return the one object for this identity; an empty label is no label."""
        present = {key: value for key, value in labels.items() if value}
        identity = (name, frozenset(present.items()))
        found = self._series.get(identity)
        if found is None:
            found = self._series[identity] = Series(name=name, labels=present)
            self._size += found.size
        return found

    def parse(self, body: bytes, *, openmetrics: bool = False) -> Page:
        """Read a page, or raise ScrapeError(parse) where Prometheus would refuse it."""
        self._forget_when_full()
        text = _decoded(body)
        lines = text.split("\n", MOST_LINES + 1)
        if len(lines) > MOST_LINES + 1:
            raise ScrapeError(
                Reason.SIZE, f"the page has more than {MOST_LINES} lines: do its labels grow without limit?"
            )
        if openmetrics:
            return self._parsed(lines_before_end(text), self._openmetrics)
        known = self._text.layouts.get(likeness(lines))
        values = known.values(lines, len(text)) if known is not None else None
        if known is not None and values is not None:
            return Page(series=known.series, values=tuple(values))
        return self._parsed(lines, self._text)

    def _parsed(self, lines: list[str], page_format: _Format) -> Page:
        known = page_format.known(lines)
        series, texts, dropped = known or self._read(lines, page_format)
        values = numbers(texts, "".join(texts))
        if values is not None:
            if known is not None and page_format is self._text:
                page_format.remember_layout(lines, series)
            return _page(series, values, dropped)
        each = [number(text) for text in texts]
        if known is not None and any(
            value is None and not _NO_WORD.isdisjoint(text) for value, text in zip(each, texts, strict=True)
        ):
            series, texts, dropped = self._read(lines, page_format)
            each = [number(text) for text in texts]
        good = [value is not None for value in each]
        return _page(
            compress(series, good), [value for value in each if value is not None], dropped + good.count(False)
        )

    def _read(self, lines: list[str], page_format: _Format) -> tuple[list[Series], list[str], int]:
        """Answer the series of all samples, their values as they are written, and how many samples are unusable."""
        series: list[Series] = []
        texts: list[str] = []
        dropped = 0
        beginnings, comments = page_format.beginnings, page_format.comments
        skip = 0
        for index, line in enumerate(lines):
            beginning, blank, value = line.rpartition(" ")
            known = beginnings.get(beginning + blank)
            if known is not None and not skip and _NO_WORD.isdisjoint(value):
                series.append(known)
                texts.append(value)
            elif skip:
                skip -= 1
            elif line not in comments:
                entry = page_format.read(lines, index)
                if isinstance(entry, Sample):
                    series.append(self._remembered(entry, page_format))
                    texts.append(entry.value)
                    skip = entry.more_lines
                elif entry is Mark.UNUSABLE:
                    dropped += 1
                elif entry is Mark.COMMENT:
                    page_format.remember_comment(line)
                else:
                    break
        return series, texts, dropped

    def _remembered(self, sample: Sample, page_format: _Format) -> Series:
        found = self.series(sample.name, sample.labels)
        if sample.beginning:
            page_format.remember(f"{sample.beginning} ", found)
        return found

    def _forget_when_full(self) -> None:
        """Start anew when label values without limit have filled the memory; pages are then read by the grammar."""
        if max(self._size, self._text.size, self._openmetrics.size) > min(self.limit, _REMEMBERED):
            self._series.clear()
            self._size = 0
            self._text.forget()
            self._openmetrics.forget()


def _decoded(body: bytes) -> str:
    body = body.removeprefix(BOM_UTF8)
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = body.decode("utf-8", "surrogateescape")
    return _CRLF.sub("\n", text) if "\r" in text else text


def _page(series: Iterable[Series], values: list[float], dropped: int) -> Page:
    series = tuple(series)
    if len(set(series)) != len(series):
        series, values = _first_of_each(series, values)
    return Page(series=tuple(series), values=tuple(values), dropped=dropped)


def _first_of_each(series: Iterable[Series], values: Iterable[float]) -> tuple[list[Series], list[float]]:
    """Keep the first sample of each series, as Prometheus does with a series that a page holds twice."""
    first: dict[Series, float] = {}
    for one, value in zip(series, values, strict=True):
        first.setdefault(one, value)
    return list(first), list(first.values())
