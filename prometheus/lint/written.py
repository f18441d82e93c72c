"""Written: an expression as it stands in a file. Data only.

SourceError    a file that cannot be read as what its name says it is
"""

from collections.abc import Callable
from dataclasses import dataclass

from prometheus.lint.check import Rule, Use
from prometheus.lint.problem import Position

__all__ = ["SourceError", "Written"]


class SourceError(Exception):
    """A file cannot be read. Carries the place and the fix."""

    def __init__(self, message: str, *, position: Position, fix: str) -> None:
        super().__init__(message)
        self.position = position
        self.fix = fix


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An expression in a file.

    `place` finds where an offset of the text is in the file, `top` is where its rule begins, and `ignored` are the
    checks that a comment beside it switches off.
    """

    file: str
    text: str
    use: Use
    place: Callable[[int], Position]
    top: Position
    rule: Rule | None = None
    ignored: frozenset[str] = frozenset()
