"""Numbers as Go's strconv.ParseFloat reads them, which is how Prometheus reads sample values; and as we print them."""

import re
from math import isfinite

__all__ = ["number", "numbers", "printed"]

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SPECIAL = re.compile(r"[+-]?inf(?:inity)?|nan", re.IGNORECASE)


def number(text: str) -> float | None:
    """Read one value; None where Go would refuse it: -nan, 1_000, 0x10, 1e999, other alphabets' digits."""
    if _DECIMAL.fullmatch(text):
        value = float(text)
        return value if isfinite(value) else None
    return float(text) if text.isascii() and _SPECIAL.fullmatch(text) else None


def numbers(texts: list[str], joined: str) -> list[float] | None:
    """Read all values at once, or answer None if any is unusual and each has to be looked at. `joined` is all of them.

    Python's float() reads what Go's does, but for underscores, other alphabets' digits, spaces, signed nan, overflow.
    """
    if "_" in joined or not (joined.isascii() and joined.isprintable()):
        return None
    try:
        values = list(map(float, texts))
    except ValueError:
        return None
    return values if isfinite(sum(values)) else None


def printed(value: float) -> str:
    """Print a value so that Go reads the same one: shortest form, +Inf, -Inf, NaN."""
    text = repr(value)
    if text[-1] in "fn":
        return {"inf": "+Inf", "-inf": "-Inf"}.get(text, "NaN")
    return text
