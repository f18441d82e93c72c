"""YAML text -> nodes that know their place, so that every refusal names file, path, value and fix.

    FleetError             a fleet file (or one it includes) cannot be used; str() is the sentence to show

A `Node` wraps one value of the document. Reading it as something it is not raises FleetError.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation
from itertools import islice
from pathlib import Path
from reprlib import Repr
from typing import Any, Never
from urllib.parse import urlsplit

import yaml

__all__ = ["FleetError", "Node", "read"]

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|w)")
_CREDENTIALS = re.compile(r"(?<=//)[^'\"]*@|(?<=['\"])(?!\w+://)[^'\"@]*:[^'\"]*@")
_ADDRESS = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+")  # the letters of RFC 3986
_PERCENT = re.compile(r"[0-9]+(?:\.[0-9]+)?%")
_WORDS = re.compile(r"[a-z]{1,15}[0-9]{0,2}(?:[-_][a-z]{1,15}[0-9]{0,2})*")
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,5}$")
_REMARK_FOR_VALUE = re.compile(r":[ \t]+#\w.*[]}]")
_NAME = re.compile(r"[\w.-]{1,63}")
_SHORTEST_SECRET = 16
_MOST = 10**9
"""Nothing is counted beyond; a number of a thousand digits would be one that cannot be exposed."""
_LONGEST = timedelta(days=36500)
"""Prometheus and Alertmanager, which count nanoseconds in 64 bits, read durations of up to 292 years."""
_WIDTH = 80  # of a terminal

_Sources = dict[str, tuple[int | None, yaml.Node | None]]


class FleetError(Exception):
    """A fleet file cannot be used. The message names file, path, what was expected and what was got."""


class _Brief(Repr):
    """Prints the beginning of a value: aliases make a short file of what no memory holds."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxstring, self.maxother, self.maxlong = 3, 10_000, _WIDTH, _WIDTH

    def repr_dict(self, value: dict[Any, Any], level: int) -> str:
        """Print keys as they stand in the file; the base class sorts them."""
        if level <= 0:
            return "{...}"
        pairs = islice(value.items(), self.maxdict)
        return f"{{{', '.join(f'{self.repr1(key, level - 1)}: {self.repr1(one, level - 1)}' for key, one in pairs)}}}"


class _StrictLoader(yaml.SafeLoader):
    """SafeLoader that refuses a key given twice: the first one would be lost without a word."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:  # noqa: ANN401 - PyYAML's signature
        node = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:  # before `<<` adds what the mapping's own keys replace
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be text", problem_mark=key.start_mark)
            if (key.tag, key.value) in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"key {key.value!r} is given twice; keep one", problem_mark=key.start_mark
                )
            seen.add((key.tag, key.value))
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002 - PyYAML's
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, KeyError, AttributeError):  # the latter two for a tag that says `!!bool` or `!!timestamp`
            shown = _shown(node.value)
            raise yaml.MarkedYAMLError(
                problem=f"{shown} is no number and no date; put it in quotes if it is text",
                problem_mark=node.start_mark,
            ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One value of a document: `file`, `line` and `path` say where it stands (`replicas[2] (vllm-c).url`)."""

    value: Any
    file: str
    path: str = ""
    line: int | None = None
    source: yaml.Node | None = field(default=None, compare=False, repr=False)
    """What the value was made of; it knows the lines of its parts."""

    @property
    def place(self) -> str:
        """Say where the value stands, for the beginning of a message."""
        file = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{file}: {self.path}" if self.path else file

    def refuse(self, expected: str) -> Never:
        """Raise FleetError for this place: what was expected, what was got."""
        raise FleetError(f"{self.place}: expected {expected}, got {_shown(self.value)}")

    def child(self, key: str) -> "Node":
        """Return the value under `key`; a missing key is a node that holds None."""
        return self._child(key, self._sources())

    def _child(self, key: str, sources: "_Sources") -> "Node":
        line, source = sources.get(key, (self.line, None))
        path = f"{self.path}.{key}" if self.path else key
        return Node(value=self.value.get(key), file=self.file, path=path, line=line, source=source)

    def _sources(self) -> "_Sources":
        """Find the line of each key; where `<<` brings a key that stands there too, its own comes last and counts."""
        pairs = self.source.value if isinstance(self.source, yaml.MappingNode) else ()
        return {key.value: (key.start_mark.line + 1, value) for key, value in pairs}

    def mapping(self, required: tuple[str, ...] = (), optional: tuple[str, ...] = ()) -> dict[str, "Node"]:
        """Read a mapping with known keys only; None counts as an empty one. Absent and null keys are left out."""
        known = (*required, *optional)
        entries = self.entries(f"a mapping with the keys {', '.join(known)}")
        for key, node in entries.items():
            if key not in known:
                hint = f"; put the secret into a file and name it in {key}_file" if f"{key}_file" in known else ""
                raise FleetError(f"{node.place}: unknown key {key!r}, expected one of: {', '.join(known)}{hint}")
        for key in required:
            if key not in entries:
                hint = "; a value that begins with # needs quotes" if key in (self.value or ()) else ""
                raise FleetError(f"{self.place}: key {key!r} is missing, got {_shown(self.value)}{hint}")
        return entries

    def entries(self, expected: str = "a mapping") -> dict[str, "Node"]:
        """Read a mapping whose keys are free text, such as model names. Null values are left out."""
        if self.value is None:
            return {}
        if not isinstance(self.value, dict):
            self.refuse(expected)
        for key in self.value:
            if not isinstance(key, str):
                raise FleetError(f"{self.place}: expected keys that are text, got {key!r}; put it in quotes")
            if not key.strip() or not key.isprintable():
                raise FleetError(f"{self.place}: expected keys of printable text, got {key!r}")
        sources = self._sources()
        return {key: self._child(key, sources) for key, value in self.value.items() if value is not None}

    def items(self) -> Iterator["Node"]:
        """Read a list; None counts as an empty one."""
        if self.value is None:
            return
        if not isinstance(self.value, list):
            self.refuse("a list")
        sources = self.source.value if isinstance(self.source, yaml.SequenceNode) else [None] * len(self.value)
        for index, (value, source) in enumerate(zip(self.value, sources, strict=True)):
            line = source.start_mark.line + 1 if source else self.line
            path = f"{self.path}[{index}]{_called(value)}"
            yield Node(value=value, file=self.file, path=path, line=line, source=source)

    def text(self, expected: str = "text") -> str:
        """Read a non-empty text without control characters."""
        if isinstance(self.value, bool | int | float | date):
            self.refuse(f"{expected} (put it in quotes)")
        if not isinstance(self.value, str) or not self.value.strip() or not self.value.isprintable():
            self.refuse(expected)
        return self.value

    def count(self, *, at_least: int = 0) -> int:
        """Read a whole number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < at_least:
            self.refuse(f"a whole number, {at_least} or more")
        if self.value > _MOST:
            self.refuse(f"a whole number, {_MOST} or less")
        return self.value

    def truth(self) -> bool:
        """Read true or false."""
        if not isinstance(self.value, bool):
            self.refuse("true or false")
        return self.value

    def duration(self) -> timedelta:
        """Read a positive duration such as 800ms, 2s, 1.5h, 30d; the resolution is one millisecond."""
        expected = "a positive duration such as 800ms, 2s or 30d"
        match = _DURATION.fullmatch(self.value) if isinstance(self.value, str) else None
        if match is None:
            self.refuse(expected)
        milliseconds = Decimal(match[1]) * _UNITS[match[2]]
        if milliseconds < 1 or milliseconds != int(milliseconds):
            self.refuse(f"{expected}, in whole milliseconds")
        if milliseconds > _LONGEST // timedelta(milliseconds=1):
            self.refuse(f"{expected}, of {_LONGEST.days}d or less")
        return timedelta(milliseconds=int(milliseconds))

    def share(self) -> Decimal:
        """Read a percentage strictly between 0 % and 100 % as a decimal share: 99.9% -> 0.999."""
        if not isinstance(self.value, str) or not _PERCENT.fullmatch(self.value):
            self.refuse("a percentage such as 99.5%")
        try:
            share = Decimal(self.value[:-1]) / 100
        except InvalidOperation:
            self.refuse("a percentage such as 99.5%")
        if not 0 < share < 1:
            self.refuse("a percentage above 0% and below 100% (100% leaves no error budget)")
        return share.normalize()

    def link(self) -> str:
        """Read an http(s) address, with a path or without, that holds no password."""
        expected = "http(s)://host[:port]/path without a password in it"
        text = self.text(expected)
        try:
            parts = urlsplit(text)
            usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable or not _ADDRESS.fullmatch(text) or "@" in parts.netloc:
            self.refuse(expected)
        return text

    def existing_file(self, base: Path) -> Path:
        """Read the path of a readable, non-empty file; relative paths start at `base`."""
        text = self.text("the path of a file")
        path = base / text
        try:
            empty = path.stat().st_size == 0 if path.is_file() else None
            if empty is False:
                path.open("rb").close()
        except OSError as error:
            self.refuse(f"a file that can be read ({error.strerror})")
        if empty is None and _may_be_secret(text):
            raise FleetError(
                f"{self.place}: expected the path of a file;"
                " what is written there is not shown, since it may be the secret"
            )
        if empty is None:
            self.refuse(f"an existing file (there is none at {path})")
        if empty:
            self.refuse("a file with something in it (it is empty)")
        return path


def read(path: Path) -> Node:
    """Read one YAML file into its root node, or raise FleetError."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FleetError(f"{path.name}: expected UTF-8 text, got byte {error.object[error.start]:#04x}") from None
    except OSError as error:
        raise FleetError(f"{path}: cannot be read: {error.strerror}; give the path of a fleet file") from None
    try:
        loader = _StrictLoader(text)
        source = loader.get_single_node()
        value = None if source is None else loader.construct_document(source)
        return Node(value=value, file=path.name, source=source)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f" line {mark.line + 1}, column {mark.column + 1}:" if mark else ""
        hint = _remark_for_value(text, mark.index if mark else 0)
        raise FleetError(f"{path.name}:{line} not YAML: {error.problem}{hint}") from None
    except RecursionError:
        raise FleetError(f"{path.name}: lists and mappings stand too deep in each other") from None
    except (yaml.YAMLError, ValueError) as error:
        raise FleetError(f"{path.name}: not YAML: {' '.join(str(error).split())}") from None


def _remark_for_value(text: str, end: int) -> str:
    """Tell of the last `key: #value` before a place where YAML breaks off: the bracket behind it went unread."""
    *_, last = (None, *_REMARK_FOR_VALUE.finditer(text, 0, end))
    if last is None:
        return ""
    return f"; line {text.count(chr(10), 0, last.start()) + 1}: a value that begins with # needs quotes"


def _called(value: Any) -> str:  # noqa: ANN401 - any YAML value
    """Name an entry of a list that has a name, since people do not count from zero."""
    name = value.get("name") if isinstance(value, dict) else None
    return f" ({name})" if isinstance(name, str) and _NAME.fullmatch(name) else ""


def _may_be_secret(path: str) -> bool:
    """Tell whether somebody may have written a secret where its file's path belongs: no folder, ending or words."""
    is_path = "/" in path or _ENDING.search(path) or _WORDS.fullmatch(path)
    return "://" in path or (len(path) >= _SHORTEST_SECRET and not is_path)


def _shown(value: Any) -> str:  # noqa: ANN401 - any YAML value
    """Print a value for a message, short enough for one line, and without what stands before @ in an address."""
    if value is None:
        return "nothing"
    if isinstance(value, date | Decimal):
        return str(value)
    try:
        text = _Brief().repr(value)
    except ValueError:
        return "a number of thousands of digits"
    text = _CREDENTIALS.sub("***@", text)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."
