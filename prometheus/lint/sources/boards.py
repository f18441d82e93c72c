"""Boards: the queries of panels and variables in a board's JSON.

In: a file's name and text. Out: `Written` expressions; raises SourceError for what is no JSON. Grafana's own variables
stand for a range or a value; they are replaced by some of the same length, so that places stay.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from prometheus.lint.check import Use
from prometheus.lint.problem import Position
from prometheus.lint.written import SourceError, Written

__all__ = ["read"]

_RANGE = re.compile(r"(?<=[\[:])\$\{?(?:__\w+|\w*interval\w*)\}?")
_VARIABLE = re.compile(r"\$\{[^}]*\}|\[\[[^\]]*\]\]")
_VALUES = re.compile(r"label_values\((?:(?P<selector>.+),\s*)?(?P<label>\w+)\)")


def read(file: str, text: str) -> tuple[Written, ...]:
    """Read the queries of a board; raises SourceError."""
    try:
        board = json.loads(text)
    except json.JSONDecodeError as error:
        place = Position(line=error.lineno, column=error.colno)
        raise SourceError(f"not JSON: {error.msg}", position=place, fix="mend the file") from error
    return tuple(_written(file, text, query, use) for query, use in _queries(board))


def _queries(part: Any) -> Iterator[tuple[str, Use]]:  # noqa: ANN401 - JSON
    if isinstance(part, list):
        for each in part:
            yield from _queries(each)
    elif isinstance(part, dict):
        if isinstance(part.get("expr"), str):
            yield part["expr"], Use.PANEL
        if isinstance(part.get("definition"), str) and (found := _VALUES.fullmatch(part["definition"])):
            selector = found["selector"]
            if selector:
                yield f"count by ({found['label']}) ({selector})", Use.LOOK
        for each in part.values():
            yield from _queries(each)


def _written(file: str, text: str, query: str, use: Use) -> Written:
    start = text.find(json.dumps(query, ensure_ascii=False))

    def place(offset: int) -> Position:
        before = json.dumps(query[:offset], ensure_ascii=False)
        return Position.of(start + len(before) - 1 if start >= 0 else 0, text)

    plain = _RANGE.sub(lambda found: "5m".ljust(len(found[0])), query)
    plain = _VARIABLE.sub(lambda found: "$".ljust(len(found[0]), "_"), plain)
    return Written(file=file, text=plain, use=use, place=place, top=place(0))
