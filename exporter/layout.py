"""Layout: what a page has in common with the one before: everything but the values. In: lines. Out: values, or None.

Engines write the same lines in the same order each time. Comparing them all at once, in C, costs half of what it costs
to look each of them up.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from sys import intern
from typing import TYPE_CHECKING

from exporter.numbers import numbers

if TYPE_CHECKING:
    from exporter.parse import Series

__all__ = ["Layout", "layout", "likeness"]

_Pick = Callable[[Sequence[str]], tuple[str, ...]]
_FEWEST = 2  # of a kind of line: an itemgetter of one answers no tuple


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The lines of a page: which are samples and how they begin, and the others, comments, as they are."""

    series: "tuple[Series, ...]"
    beginnings: tuple[str, ...]
    comments: tuple[str, ...]
    pick_samples: _Pick
    pick_comments: _Pick
    fixed: int
    """Characters of a page that are no value's."""

    def values(self, lines: Sequence[str], size: int) -> list[float] | None:
        """Answer the values of a page of this layout, None for another one, or where a value is unusual.

        `lines` are as many as the layout's, with `size` characters in all, line breaks included.
        """
        if self.pick_comments(lines) != self.comments:
            return None
        words = list(map(str.removeprefix, self.pick_samples(lines), self.beginnings))
        joined = "".join(words)
        # A line that does not begin as it should is still whole, so there is too much of it.
        return numbers(words, joined) if len(joined) + self.fixed == size and " " not in joined else None


def likeness(lines: Sequence[str]) -> tuple[int | str, ...]:
    """Answer what two pages of one layout have in common, and few others do."""
    count = len(lines)
    places = (count // 3, 2 * count // 3, max(count - 2, 0))  # labels such as the model are not on the first lines
    return (count, *(lines[at].rpartition(" ")[0] for at in places))


def layout(lines: Sequence[str], series: "Mapping[str, Series]") -> Layout | None:
    """Make the layout of a page each of whose samples begins with a key of `series`; None for a page of too few lines.

    Keys end with the blank before the value.
    """
    starts = [line[: line.rfind(" ") + 1] for line in lines]
    samples = tuple(at for at, start in enumerate(starts) if start in series)
    comments = tuple(at for at, start in enumerate(starts) if start not in series)
    if min(len(samples), len(comments)) < _FEWEST:
        return None
    beginnings = tuple(intern(starts[at]) for at in samples)  # whoever remembers them has interned them too
    texts = tuple(intern(lines[at]) for at in comments)
    return Layout(
        series=tuple(series[start] for start in beginnings),
        beginnings=beginnings,
        comments=texts,
        pick_samples=_pick(samples),
        pick_comments=_pick(comments),
        fixed=sum(map(len, (*beginnings, *texts))) + len(lines) - 1,
    )


@lru_cache(maxsize=256)
def _pick(places: tuple[int, ...]) -> _Pick:
    """Share what the layouts of all replicas of one engine and version have in common."""
    return itemgetter(*places)
