"""Selector: which series of a page an engine file means, in PromQL's form: `name{label="value",other=~"regex"}`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["Selector", "selector"]

_FORM = re.compile(r"([^{]+)(?:\{(.+)\})?")
_MATCHER = re.compile(r'(\w+)(=~|!~|!=|=)"([^"]*)"(?:,|$)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """A name and what its series' labels must match; a label that is absent reads as empty, as in PromQL."""

    name: str
    matchers: tuple[tuple[str, re.Pattern[str], bool], ...] = ()

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Tell whether a series with these labels is meant."""
        return all(
            (pattern.fullmatch(labels.get(label, "")) is not None) is wanted for label, pattern, wanted in self.matchers
        )


@lru_cache(maxsize=1024)
def selector(text: str) -> Selector:
    """Read a selector; raise ValueError where it is none."""
    form = _FORM.fullmatch(text)
    inside = (form[2] or "") if form else ""
    if form is None or _MATCHER.sub("", inside):
        message = f'expected name or name{{label="value"}}, got {text!r}'
        raise ValueError(message)
    return Selector(
        name=form[1],
        matchers=tuple(
            (label, re.compile(value if "~" in operator else re.escape(value)), "!" not in operator)
            for label, operator, value in _MATCHER.findall(inside)
        ),
    )
