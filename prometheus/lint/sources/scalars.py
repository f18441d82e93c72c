"""Scalars: where a character of a YAML text stands in the file.

In: a scalar node and the file. Out: a function from an offset of the value to its `Position`. Exact for blocks that
keep their lines (`|`) and for values on one line; for a folded one the place where it begins.
"""

from collections.abc import Callable

import yaml

from prometheus.lint.problem import Position

__all__ = ["place_in"]


def place_in(node: yaml.ScalarNode, file: str, *, after: int = 0) -> Callable[[int], Position]:
    """Return where offsets of the value are in the file; `after` is added to each offset."""
    line, column = node.start_mark.line, node.start_mark.column
    text = str(node.value)
    if node.style == "|":
        return lambda offset: _in_block(Position.of(after + offset, text), line, file)
    is_one_line = node.end_mark.line == line and node.style != ">"
    quote = 1 if node.style in {"'", '"'} else 0

    def place(offset: int) -> Position:
        before = text[: after + offset]
        doubled = before.count("'") if node.style == "'" else before.count('"') + before.count("\\") if quote else 0
        return Position(line=line + 1, column=column + 1 + (quote + len(before) + doubled if is_one_line else 0))

    return place


def _in_block(within: Position, header: int, file: str) -> Position:
    lines = file.splitlines()
    first = next((index for index in range(header + 1, len(lines)) if lines[index].strip()), header)
    indent = len(lines[first]) - len(lines[first].lstrip(" "))
    return Position(line=header + 1 + within.line, column=within.column + indent)
