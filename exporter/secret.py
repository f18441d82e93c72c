"""Secret: a file that holds an API key -> the key, read again when the file changes. Never printed."""

from pathlib import Path

from exporter.failures import Reason, ScrapeError

__all__ = ["SecretFile"]


class SecretFile:
    """An API key in a file. Rotating the key means rewriting the file; no reload is needed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._key = ""

    def read(self) -> str:
        """Answer the key, or raise ScrapeError(auth) that names the file and never its content."""
        try:
            status = self._path.stat()
            seen = (status.st_mtime_ns, status.st_size, status.st_ino)
            if seen != self._seen:
                self._key = self._path.read_text(encoding="utf-8").strip()
                self._seen = seen
        except (OSError, UnicodeDecodeError) as error:
            self._seen = None
            raise ScrapeError(
                Reason.AUTH, f"api_key_file {self._path} cannot be read: {type(error).__name__}"
            ) from None
        if not self._key or not self._key.isascii() or not self._key.isprintable():
            raise ScrapeError(Reason.AUTH, f"api_key_file {self._path} must hold one line of printable ASCII")
        return self._key
