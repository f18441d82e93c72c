"""Entry: what a line of a page can be, and how its label pairs become labels; the two formats read lines into this."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from exporter.failures import Reason, ScrapeError

__all__ = ["Mark", "Sample", "is_utf8", "merged", "refusal", "unescaped"]

_ESCAPE = re.compile(r'\\([\\"n])')
_SURROGATE = re.compile("[\udc80-\udcff]")


class Mark(Enum):
    """A line that holds no sample to keep."""

    COMMENT = auto()
    UNUSABLE = auto()
    """A sample that has to be left out."""
    END = auto()
    """Nothing after it is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A sample: its value as text, the lines that it takes after its first, and what a line like it begins with.

    `beginning` is empty where a line that begins the same could still be read differently.
    """

    name: str
    labels: Mapping[str, str]
    value: str
    more_lines: int = 0
    beginning: str = ""


def merged(pairs: Sequence[tuple[str, str]]) -> dict[str, str] | None:
    """Make labels of a page's label pairs; None if Prometheus would refuse them.

    Prometheus removes a label that is empty anywhere, and only then objects to one that is there twice, or to a series
    that lost its name.
    """
    labels = dict(pairs)
    if len(labels) == len(pairs) and "__name__" not in labels:
        return labels
    empty = {key for key, value in pairs if not value}
    kept = [key for key, _ in pairs if key not in empty]
    if "__name__" in labels or len(set(kept)) != len(kept):
        return None
    return {key: labels[key] for key in kept}


def unescaped(text: str) -> str:
    r"""Replace the three escapes of label values: \\, \" and \n; any other backslash stands for itself."""
    return _ESCAPE.sub(lambda match: "\n" if match[1] == "n" else match[1], text) if "\\" in text else text


def is_utf8(text: str) -> bool:
    """Tell whether the bytes that became this text were UTF-8."""
    return text.isascii() or _SURROGATE.search(text) is None


def refusal(index: int, expected: str, got: str) -> ScrapeError:
    """Make the error that refuses a page for its line of that index."""
    return ScrapeError(Reason.PARSE, f"line {index + 1} of the page: {expected}, got {got[:60]!a}")
