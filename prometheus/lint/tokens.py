"""Tokens: where the words of an expression stand, which the parser does not tell.

In: the text of an expression that parses. Out: a `Cursor`, which finds each word in the order of the text. Labels in
lists (`by (…)`) and in braces are no words of their own: they could be spelled like a metric or a function.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Cursor", "Token"]

_STRING = r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`[^`]*`"
_TOKEN = re.compile(
    rf"""
      (?P<skip>\#[^\n]* | \s+ | offset\s*-?\s*[\w.]+
        | \b(?:by|without|on|ignoring|group_left|group_right)\s*\((?:{_STRING}|[^()])*\)
        | \b(?:group_left|group_right)\b
        | \[(?:{_STRING}|[^\]])*\])
    | (?P<braces>\{{(?:{_STRING}|[^}}"'`])*\}})
    | (?P<string>{_STRING})
    | (?P<number>0x[0-9a-f]+ | (?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?(?![\w.]) | (?:\d+(?:ms|[smhdwy]))+ | \b(?:inf|nan)\b)
    | (?P<word>[a-z_:][\w:]*)
    | (?P<sign>==|!=|>=|<=|.)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_CONDITION = re.compile(rf"(?P<name>{_STRING}|[a-zA-Z_]\w*)\s*(?:(?:=~|!~|!=|=)\s*(?:{_STRING}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A word, number, string, sign, or the braces of a selector."""

    kind: str
    text: str
    at: int

    def conditions(self) -> list[int]:
        """Find where the conditions stand, if these are the braces of a selector."""
        return [self.at + 1 + found.start() for found in _CONDITION.finditer(self.text[1:-1])]


def _tokens(text: str) -> list[Token]:
    found = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        if kind != "skip":
            found.append(Token(kind=kind, text=match.group(), at=match.start()))
    return found


@dataclass(slots=True)
class Cursor:
    """Walks through the text; what is asked for has to be asked for in the order of the text."""

    text: str
    _tokens: list[Token] = field(init=False)
    _next: int = 0

    def __post_init__(self) -> None:
        """Cut the text into tokens."""
        self._tokens = _tokens(self.text)

    @property
    def size(self) -> int:
        """How many words, numbers, strings, signs and selectors there are."""
        return len(self._tokens)

    def word(self, word: str, *, before_parenthesis: bool = False) -> int:
        """Find the next use of a word: as a function or an aggregation, or as the name of a series."""

        def fits(index: int) -> bool:
            token = self._tokens[index]
            is_called = index + 1 < len(self._tokens) and self._tokens[index + 1].text == "("
            return token.text.lower() == word.lower() and is_called is before_parenthesis

        return self._find(fits)

    def sign(self, sign: str) -> int:
        """Find the next use of an operator."""
        return self._find(lambda index: self._tokens[index].text.lower() == sign.lower())

    def kind(self, kind: str) -> int:
        """Find the next number or string."""
        return self._find(lambda index: self._tokens[index].kind == kind)

    def braces(self, *, follow: bool) -> Token | None:
        """Take the braces of a selector: those that follow its name, if any do, or the next there are."""
        for index in range(self._next, min(self._next + 1, len(self._tokens)) if follow else len(self._tokens)):
            if self._tokens[index].kind == "braces":
                self._next = index + 1
                return self._tokens[index]
        return None

    def _find(self, fits: Callable[[int], bool]) -> int:
        for index in range(self._next, len(self._tokens)):
            if fits(index):
                self._next = index + 1
                return self._tokens[index].at
        return self._tokens[self._next].at if self._next < len(self._tokens) else 0
