"""Expose: samples -> a page in the text format 0.0.4, UTF-8, LF.

What does not change from page to page (names, labels, HELP and TYPE lines) is written once into a `Template`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

from exporter.catalogue import Metric
from exporter.numbers import printed

__all__ = ["CONTENT_TYPE", "Point", "Template", "escaped", "page"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_HELP_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The identity of one line of a page; `suffix` is _bucket, _sum or _count of a histogram."""

    metric: Metric
    labels: tuple[tuple[str, str], ...] = ()
    suffix: str = ""


class Template:
    """A page without its values. Points of one metric stand together, in the order the format demands."""

    def __init__(self, points: Iterable[Point]) -> None:
        """Write what comes before each value; a label without a value is left out."""
        self._pieces: list[str] = []
        head = ""
        last: Metric | None = None
        for point in points:
            if point.metric is not last:
                last = point.metric
                head += _head(last)
            self._pieces += [f"{head}{last.name}{point.suffix}{_braces(point.labels)} ", ""]
            head = "\n"
        self._pieces.append(head)

    def render(self, values: Sequence[float]) -> str:
        """Write the page; `values` in the order of the points."""
        pieces = self._pieces.copy()
        # Finite numbers need no translation: a page has hundreds of them, and others once in a while.
        pieces[1::2] = map(repr if isfinite(sum(values)) else printed, values)
        return "".join(pieces)


def page(samples: Iterable[tuple[Point, float]]) -> str:
    """Write a page that is not worth a template."""
    kept = list(samples)
    return Template(point for point, _ in kept).render([value for _, value in kept])


def escaped(text: str) -> str:
    """Write a label value; bytes that are no text become the replacement character."""
    return text.encode("utf-8", "replace").decode("utf-8").translate(_ESCAPES)


def _head(metric: Metric) -> str:
    return f"# HELP {metric.name} {metric.help.translate(_HELP_ESCAPES)}\n# TYPE {metric.name} {metric.kind.value}\n"


def _braces(labels: Iterable[tuple[str, str]]) -> str:
    pairs = ",".join(f'{name}="{escaped(value)}"' for name, value in labels if value)
    return f"{{{pairs}}}" if pairs else ""
