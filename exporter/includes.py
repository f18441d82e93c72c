"""Includes: which more files a fleet file names. In: its path, or a pattern. Out: patterns, or the files they match."""

from glob import glob
from pathlib import Path

from exporter.document import Node, read

__all__ = ["include_patterns", "included_files", "pattern"]


def include_patterns(path: Path) -> tuple[str, ...]:
    """Read the patterns of a fleet file; raise FleetError where it does not hold any."""
    listed = read(path).entries().get("include")
    return tuple(pattern(node) for node in listed.items()) if listed else ()


def pattern(node: Node) -> str:
    """Read one pattern."""
    return node.text("a path or pattern such as targets/*.yml")


def included_files(pattern: str, base: Path) -> list[Path]:
    """Find the files that a pattern matches now, in the order of their names; relative ones start at `base`.

    As in a shell, `*` leaves out hidden files: those of editors, and the folders behind the links of a mounted volume.
    """
    found = glob(pattern, root_dir=base, recursive=True)  # noqa: PTH207 - Path.glob raises for half of all patterns
    return sorted(base / name for name in found)
