"""Typed reading of a mapping that a person wrote: each method takes one key, or raises an error with its path."""

import re
from collections.abc import Mapping, Sequence

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_REQUIRED = object()


class ConfigError(Exception):
    """A configuration that cannot be used; the message says where, what was expected, what was got."""


def parse_seconds(text: str) -> float | None:
    """Read a duration such as 20ms, 1.5s, 10m or 1h; None when it is not one."""
    match = _DURATION.fullmatch(text)
    return float(match[1]) * _SECONDS[match[2]] if match else None


class Fields:
    """One mapping of the document, which remembers where it stands and which keys were asked for."""

    def __init__(self, value: object, source: str, path: str) -> None:
        self._source = source
        self._path = path
        if not isinstance(value, Mapping):
            raise self.wrong("", "a mapping", value)
        self._value: Mapping[object, object] = value
        self._asked: list[str] = []

    def wrong(self, key: str, expected: str, got: object) -> ConfigError:
        """Make the error for one key of this mapping."""
        path = ".".join(part for part in (self._path, key) if part) or "the document"
        return ConfigError(f"{self._source}: {path}: expected {expected}, got {got!r}")

    def refuse_unknown(self) -> None:
        """Raise for the first key that nobody asked for."""
        for key in self._value:
            if key not in self._asked:
                expected = f"one of {', '.join(self._asked)}"
                path = self._path or "the document"
                raise ConfigError(f"{self._source}: {path}: unknown key {key!r}; expected {expected}")

    def _get(self, key: str, default: object, expected: str) -> object:
        self._asked.append(key)
        value = self._value.get(key, default)
        if value is _REQUIRED:
            raise self.wrong(key, expected, None)
        return value

    def number(
        self, key: str, *, minimum: float, maximum: float | None = None, default: float | object = _REQUIRED
    ) -> float:
        """Read a number within bounds."""
        expected = (
            f"a number of at least {minimum:g}" if maximum is None else f"a number from {minimum:g} to {maximum:g}"
        )
        value = self._get(key, default, expected)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(key, expected, value)
        if not minimum <= value <= (float("inf") if maximum is None else maximum):
            raise self.wrong(key, expected, value)
        return float(value)

    def integer(self, key: str, *, minimum: int, maximum: int | None = None, default: int | object = _REQUIRED) -> int:
        """Read a whole number within bounds."""
        expected = (
            f"a whole number of at least {minimum}"
            if maximum is None
            else f"a whole number from {minimum} to {maximum}"
        )
        value = self._get(key, default, expected)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(key, expected, value)
        if value < minimum or (maximum is not None and value > maximum):
            raise self.wrong(key, expected, value)
        return value

    def seconds(self, key: str, *, default: str | object = _REQUIRED, above_zero: bool = False) -> float:
        """Read a duration with its unit."""
        expected = f"a duration{' above zero' if above_zero else ''} such as 20ms, 8s or 10m"
        value = self._get(key, default, expected)
        seconds = parse_seconds(value) if isinstance(value, str) else None
        if seconds is None or (above_zero and seconds == 0):
            raise self.wrong(key, expected, value)
        return seconds

    def flag(self, key: str, *, default: bool) -> bool:
        """Read true or false."""
        value = self._get(key, default, "true or false")
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false", value)
        return value

    def text(self, key: str, *, default: str | None) -> str | None:
        """Read optional text."""
        value = self._get(key, default, "text")
        if value is not None and (not isinstance(value, str) or not value):
            raise self.wrong(key, "text in quotes", value)
        return value

    def name(self, key: str) -> str:
        """Read a name that fits into a URL."""
        expected = "a name of lower-case letters, digits, '.', '_' and '-'"
        value = self._get(key, _REQUIRED, expected)
        if not isinstance(value, str) or not _NAME.fullmatch(value):
            raise self.wrong(key, expected, value)
        return value

    def choice(self, key: str, allowed: Sequence[str]) -> str:
        """Read one of the allowed words."""
        expected = f"one of {', '.join(allowed)}"
        value = self._get(key, _REQUIRED, expected)
        if value not in allowed:
            raise self.wrong(key, expected, value)
        return str(value)

    def section(self, key: str) -> "Fields":
        """Read a nested mapping; an absent one is empty."""
        value = self._get(key, {}, "a mapping")
        return Fields(value, self._source, f"{self._path}.{key}".lstrip("."))

    def sections(self, key: str) -> "dict[str, Fields]":
        """Read a mapping of names to mappings."""
        outer = self.section(key)
        return {
            str(name): Fields(value, self._source, f"{outer._path}.{name}")  # noqa: SLF001 - its own class
            for name, value in outer._value.items()  # noqa: SLF001 - its own class
        }

    def items(self, key: str) -> "list[Fields]":
        """Read a list of mappings with at least one entry."""
        expected = "a list with at least one entry"
        value = self._get(key, _REQUIRED, expected)
        if not isinstance(value, list) or not value:
            raise self.wrong(key, expected, value)
        return [Fields(entry, self._source, f"{key}[{index}]") for index, entry in enumerate(value)]
