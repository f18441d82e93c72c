"""Storage: JSON files that outlive a restart. In and out: a mapping; a crash leaves the old file or the new one."""

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["read", "write"]

_log = logging.getLogger(__name__)


def read(file: Path, *, without: str) -> dict[str, Any]:
    """Read a mapping; a file that cannot be used is ignored with a warning that says what is started `without`."""
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        _log.warning("%s cannot be read (%s): starting without %s", file, type(error).__name__, without)
        return {}
    return stored if isinstance(stored, dict) else {}


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
        _log.warning("%s cannot be written (%s): %s will be lost at a restart", file, error.strerror, lost)
        return False
    return True
