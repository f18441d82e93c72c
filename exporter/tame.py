"""Tame: text that an engine chose -> text that is safe in a label, a page and a log. Pure."""

__all__ = ["tamed"]

_LONGEST = 200
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def tamed(text: str, longest: int = _LONGEST) -> str:
    """Replace what cannot be printed, such as control characters and halves of pairs, and cut what is too long."""
    cut = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return cut if cut.isprintable() else "".join(each if each.isprintable() else _REPLACEMENT for each in cut)
