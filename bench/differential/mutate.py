"""Invents pages, for a seed and a number always the same one: small ones by a grammar that errs, and torn real ones."""

import random
from collections.abc import Callable, Sequence

from bench.differential.exposition import Exposition
from bench.differential.known import FIELD_FAULTS, OPENMETRICS_PAGES, captures
from bench.differential.oddities import BYTES, ESCAPES, LABELS, LINES, NAMES, NUMBERS, SPACES, TEXTS, TYPES

__all__ = ["Inventor"]

_MOST_LINES = 8


class Inventor:
    """A source of pages."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._whole = [*captures(), *FIELD_FAULTS.values()]
        self._ways: dict[Callable[..., bytes], int] = {
            _by_grammar: 50,
            self._torn_slice: 30,
            self._slice_with_oddity: 19,
            self._torn_whole: 1,
        }

    def page(self, number: int) -> Exposition:
        """Invent the page of that number."""
        chance = random.Random(self._seed * 1_000_003 + number)  # noqa: S311 - reproducible, not secret
        openmetrics = _one_in(4, chance)
        (way,) = chance.choices(tuple(self._ways), tuple(self._ways.values()))
        body = way(chance, openmetrics=openmetrics)
        if openmetrics and not _one_in(10, chance):
            body = _ended(body, chance)
        elif _one_in(10, chance):
            body = body.rstrip(b"\n")
        if _one_in(100, chance):
            body = chance.choice((b"\xef\xbb\xbf" + body, body.replace(b"\n", b"\r\n"), body.replace(b"\n", b"\r")))
        return Exposition(body=body, openmetrics=openmetrics)

    def pages(self, numbers: range) -> list[Exposition]:
        """Invent the pages of those numbers."""
        return [self.page(number) for number in numbers]

    def _torn_slice(self, chance: random.Random, *, openmetrics: bool) -> bytes:
        body = self._slice(chance, openmetrics=openmetrics)
        for _ in range(chance.randint(1, 3)):
            body = _torn(body, chance)
        return body

    def _slice_with_oddity(self, chance: random.Random, *, openmetrics: bool) -> bytes:
        lines = self._slice(chance, openmetrics=openmetrics).split(b"\n")
        at = chance.randrange(len(lines))
        lines[at] = _with_oddity(lines[at], chance)
        return b"\n".join(lines)

    def _torn_whole(self, chance: random.Random, *, openmetrics: bool) -> bytes:
        return _torn(chance.choice(OPENMETRICS_PAGES if openmetrics and _one_in(2, chance) else self._whole), chance)

    def _slice(self, chance: random.Random, *, openmetrics: bool) -> bytes:
        if openmetrics and _one_in(2, chance):
            return chance.choice(OPENMETRICS_PAGES).removesuffix(b"\n").removesuffix(b"# EOF")
        lines = chance.choice(self._whole).splitlines(keepends=True)
        start = chance.randrange(len(lines) or 1)
        return b"".join(lines[start : start + chance.randint(1, _MOST_LINES)])


def _ended(body: bytes, chance: random.Random) -> bytes:
    if body and not body.endswith(b"\n"):
        body += b"\n"
    return body + _mostly(b"# EOF\n", (b"# EOF", b"# EOF", b"# EOF\n\n", b"# EOF \n", b"#EOF\n"), chance, one_in=5)


def _by_grammar(chance: random.Random, *, openmetrics: bool) -> bytes:
    kinds: dict[Callable[..., bytes], int] = {_sample: 72, _odd_line: 12, _type: 10, _help: 6}
    lines = chance.choices(tuple(kinds), tuple(kinds.values()), k=chance.randint(1, 4))
    return b"".join(kind(chance, openmetrics=openmetrics) + b"\n" for kind in lines)


def _odd_line(chance: random.Random, **_: bool) -> bytes:
    return chance.choice(LINES)


def _type(chance: random.Random, **_: bool) -> bytes:
    return b"# TYPE " + _name(chance) + _space(chance) + _mostly(b"gauge", TYPES, chance, one_in=6)


def _help(chance: random.Random, **_: bool) -> bytes:
    return b"# HELP " + _name(chance) + _space(chance) + _text(chance)


def _sample(chance: random.Random, *, openmetrics: bool) -> bytes:
    line = _space(chance, b"") + _name(chance) + _space(chance, b"")
    if not _one_in(3, chance):
        opening = _mostly(b"{", (b"", b"{{", b"{ ", b"{,", b"[", b"{\n"), chance, one_in=30)
        closing = _mostly(b"}", (b"", b"}}", b" }", b",}", b",,}", b"]", b"\n}"), chance, one_in=20)
        line += opening + _labels(chance) + closing
    line += _space(chance) + _mostly(chance.choice((b"1", b"0.25", b"1e3")), NUMBERS, chance, one_in=6)
    if _one_in(10, chance):
        line += _space(chance) + _mostly(b"1767225600", NUMBERS, chance, one_in=5)
    if _one_in(7 if openmetrics else 50, chance):
        line += b" # {" + _labels(chance) + b"}" + _space(chance) + _mostly(b"1", NUMBERS, chance)
        line += _space(chance) + _mostly(b"17", NUMBERS, chance) if _one_in(3, chance) else b""
    return line + _space(chance, b"")


def _labels(chance: random.Random) -> bytes:
    labels = b""
    for position in range(chance.randint(0, 3)):
        between = _mostly(b",", (b"", b" ", b",,", b", ", b" ,", b";"), chance, one_in=20)
        labels += (between if position else b"") + _mostly(chance.choice((b"b", b"c", b"d")), LABELS, chance)
        labels += (
            _space(chance, b"") + _mostly(b"=", (b"", b"==", b":", b"=~"), chance, one_in=50) + _space(chance, b"")
        )
        quote = _mostly(b'"', (b"", b"'", b'""'), chance, one_in=50)
        labels += quote + _text(chance) + quote + _space(chance, b"")
    return labels


def _name(chance: random.Random) -> bytes:
    return _mostly(chance.choice((b"a", b"b", b"c_total", b"d_bucket")), NAMES, chance)


def _text(chance: random.Random) -> bytes:
    parts = chance.choices(("plain", "odd", "escape"), (65, 20, 15), k=chance.randint(0, 2))
    pools = {"plain": (b"x",), "odd": TEXTS, "escape": ESCAPES}
    return b"".join(chance.choice(pools[part]) for part in parts)


def _space(chance: random.Random, usual: bytes = b" ") -> bytes:
    return _mostly(usual, SPACES, chance, one_in=60)


def _mostly(usual: bytes, odd_ones: Sequence[bytes], chance: random.Random, *, one_in: int = 25) -> bytes:
    return chance.choice(odd_ones) if _one_in(one_in, chance) else usual


def _one_in(many: int, chance: random.Random) -> bool:
    return chance.randrange(many) == 0


def _with_oddity(line: bytes, chance: random.Random) -> bytes:
    """Put something odd in the place of a word of a line, or between its words."""
    words = line.split(b" ")
    at = chance.randrange(len(words))
    odd = chance.choice(chance.choice((NUMBERS, NAMES, LABELS, TEXTS, ESCAPES, SPACES, TYPES, LINES)))
    words[at : at if _one_in(3, chance) else at + 1] = [odd]
    return b" ".join(words)


def _torn(body: bytes, chance: random.Random) -> bytes:
    """Delete, insert, replace, turn, double a span of bytes, or put another one in its place."""
    size = len(body)
    start, other = chance.randint(0, size), chance.randint(0, size)
    span = body[start : start + chance.choice((1, 1, 1, 2, 5, 30))]
    torn = chance.choice(
        (
            b"",
            chance.choice(BYTES) + span,
            chance.choice(BYTES),
            span[::-1],
            span + span,
            body[other : other + len(span)],
        )
    )
    return body[:start] + torn + body[start + len(span) :]
