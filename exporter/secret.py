"""Secret: a file that holds a key or token -> what it holds, read again when the file changes. Never printed."""

from pathlib import Path

__all__ = ["SecretError", "SecretFile", "Version", "version"]

Version = tuple[int, int, int]
"""What is another one as soon as a file was rewritten or replaced."""


class SecretError(Exception):
    """A secret cannot be read. The message names the file and never its content."""


class SecretFile:
    """One line in a file. To change it, rewrite the file; no reload is needed. `role` says what the file is for."""

    def __init__(self, path: Path, role: str) -> None:
        self._path = path
        self._role = role
        self._seen: Version | None = None
        self._content = ""

    def read(self) -> str:
        """Answer the secret, or raise SecretError."""
        try:
            seen = version(self._path)
            if seen != self._seen:
                self._content = self._path.read_text(encoding="utf-8").strip()
                self._seen = seen
        except (OSError, UnicodeDecodeError) as error:
            self._seen = None
            why = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise SecretError(f"{self._role} {self._path} cannot be read: {why}") from None
        if not self._content or not self._content.isascii() or not self._content.isprintable():
            raise SecretError(f"{self._role} {self._path} must hold one line of printable ASCII")
        return self._content


def version(file: Path) -> Version:
    """Answer the version of a file that is there; links are followed, so a mount that swaps one is a new version."""
    status = file.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino
