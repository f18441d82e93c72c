"""Changes: whether the files behind a fleet changed. In: the path of a fleet file. Out: yes, once they hold still.

Contents are compared, not times or inodes: that is the same for editors that rename, mounts that swap a link, and files
that newly match an `include` pattern.
"""

from hashlib import blake2b
from pathlib import Path

from exporter.document import FleetError
from exporter.includes import include_patterns, included_files

__all__ = ["FleetFiles"]


class FleetFiles:
    """The fleet file and those it includes, as they were when they were last taken."""

    def __init__(self, path: Path) -> None:
        """Look at the files for the first time."""
        self._path = path
        self._root = b""
        self._patterns: tuple[str, ...] = ()
        self._taken = self._seen = self._look()

    def take(self) -> None:
        """Note that the files are about to be read as they are now."""
        self._taken = self._seen = self._look()

    def have_settled_anew(self) -> bool:
        """Tell whether the files differ from those taken and are as at the last call: nobody is writing them."""
        before, self._seen = self._seen, self._look()
        return self._seen == before and self._seen != self._taken

    def _look(self) -> dict[Path, bytes]:
        root = _digest(self._path)
        if root != self._root:
            self._root, self._patterns = root, self._included()
        found = (file for pattern in self._patterns for file in included_files(pattern, self._path.parent))
        return {self._path: root} | {file: _digest(file) for file in found}

    def _included(self) -> tuple[str, ...]:
        try:
            return include_patterns(self._path)
        except FleetError:  # only the file itself can change that it cannot be read as a fleet
            return ()


def _digest(file: Path) -> bytes:
    """Answer what stands for a file's content, nothing for a file that cannot be read."""
    try:
        return blake2b(file.read_bytes()).digest()
    except OSError:
        return b""
