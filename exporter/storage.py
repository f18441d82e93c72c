"""Storage: JSON files that outlive a restart. In and out: a mapping; a crash leaves the old file or the new one.

StorageError           a directory cannot be used to keep anything; str() is the sentence to show
"""

import fcntl
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["StorageError", "claim", "read", "write"]

_log = logging.getLogger(__name__)
_OURS = frozenset({".json", ".new"})
_failing: set[Path] = set()
"""Files that could not be written when it was last tried: one warning is enough until it works again."""


class StorageError(Exception):
    """A directory cannot be used to keep anything."""


def claim(directory: Path) -> int:
    """Make a directory, and keep other exporters from it; answer a file descriptor that holds the claim while open.

    Two of them would undo each other's files: each writes all it knows.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        odd = next((file for file in sorted(directory.iterdir()) if file.suffix in _OURS and _is_odd(file)), None)
    except OSError as error:
        raise StorageError(f"--state-dir {directory}: expected a directory of ours: {error.strerror}") from None
    if odd is not None:  # to read a pipe would take for ever, to read a device all memory
        os.close(held)
        raise StorageError(f"{odd}: expected a file, got a directory, pipe, socket or device; remove it")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        raise StorageError(
            f"--state-dir {directory}: another exporter uses it; give each exporter a directory of its own"
        ) from None
    except OSError as error:  # some network file systems have no locks
        _log.info("%s cannot be locked (%s): see that no other exporter uses it", directory, error.strerror)
    return held


def _is_odd(file: Path) -> bool:
    return file.exists() and not file.is_file()


def read(file: Path, *, without: str) -> dict[str, Any]:
    """Read a mapping; a file that cannot be used is ignored with a warning that says what is started `without`."""
    try:
        stored = None if _is_odd(file) else json.loads(file.read_text(encoding="utf-8"))
        if isinstance(stored, dict):
            return stored
        kind = "no mapping"
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        kind = type(error).__name__
    _log.warning("%s cannot be read (%s): starting without %s", file, kind, without)
    return {}


def write(file: Path, content: Mapping[str, Any], *, lost: str) -> bool:
    """Replace the file as a whole; where that fails, warn what will be `lost` at a restart and answer False."""
    draft = file.with_suffix(".new")
    try:
        with draft.open("w", encoding="utf-8") as stream:
            json.dump(content, stream, indent=1, sort_keys=True)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(file)
    except OSError as error:
        if file not in _failing:
            _log.warning("%s cannot be written (%s): %s will be lost at a restart", file, error.strerror, lost)
        _failing.add(file)
        return False
    if file in _failing:
        _failing.remove(file)
        _log.info("%s can be written again", file)
    return True
