"""Tame: text that an engine chose -> text that is safe in a label, a page and a log. Pure."""

from hashlib import blake2b

__all__ = ["shortened", "tamed"]

_LONGEST = 200
_FINGERPRINT = 4  # bytes; twice as many characters
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def tamed(name: str) -> str:
    """Answer a name that can be printed and is short; one that had to be changed ends in its fingerprint.

    So two names never become one: their series would be the same.
    """
    if len(name) <= _LONGEST and name.isprintable():
        return name
    fingerprint = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_FINGERPRINT).hexdigest()
    return f"{_printable(name[: _LONGEST - len(fingerprint) - 1])}…{fingerprint}"


def shortened(sentence: str, longest: int) -> str:
    """Answer a sentence on one line, cut where it is too long."""
    return _printable(sentence if len(sentence) <= longest else f"{sentence[: longest - 1]}…")


def _printable(text: str) -> str:
    """Replace what cannot be printed, such as control characters and halves of pairs."""
    return text if text.isprintable() else "".join(each if each.isprintable() else _REPLACEMENT for each in text)
