"""Tables and progress for people: figures on standard output, how far a run is on standard error."""

import sys
from collections.abc import Sequence
from statistics import median

__all__ = ["progress", "spread", "table"]


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table: the first column is text, the others are figures."""
    widths = [max(len(row[at]) for row in (columns, *rows)) for at in range(len(columns))]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in (columns, *rows)]
    return "\n".join([title, lines[0], "  ".join("-" * width for width in widths), *lines[1:], ""])


def spread(figures: Sequence[float], digits: int = 2) -> tuple[str, str]:
    """Answer the median, and the smallest and largest figure."""
    return f"{median(figures):.{digits}f}", f"{min(figures):.{digits}f} to {max(figures):.{digits}f}"


def progress(what: str) -> None:
    """Say what is being done now."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{what}")
    else:
        sys.stderr.write(f"{what}\n")
    sys.stderr.flush()
