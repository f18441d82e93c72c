"""Problem: what is wrong, where, and what to write instead. Data only, as cloudflare/pint has it."""

from dataclasses import dataclass
from enum import Enum

__all__ = ["Position", "Problem", "Severity"]


class Severity(Enum):
    """An error is refused; a warning is shown."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Position:
    """Line and column of a character, both counted from 1."""

    line: int
    column: int

    @classmethod
    def of(cls, offset: int, text: str) -> "Position":
        """Find the position of the character at an offset."""
        before = text[:offset]
        return cls(line=before.count("\n") + 1, column=offset - (before.rfind("\n") + 1) + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong: `position` in the file, `within` the expression, the rule that found it, and the fix."""

    file: str
    position: Position
    within: Position
    rule: str
    severity: Severity
    message: str
    fix: str

    def __str__(self) -> str:
        """Answer the problem as compilers print it: `file:line:column: message; fix (rule)`."""
        place = f"{self.file}:{self.position.line}:{self.position.column}"
        kind = "warning: " if self.severity is Severity.WARNING else ""
        return f"{place}: {kind}{self.message}; {self.fix} ({self.rule})"
