"""PromQL: expressions built from catalogue objects, so that a wrong one fails where it is written.

In: metrics and labels of the catalogue, recorded series, windows. Out: `Expr`, which prints itself on any time scale.

    PromQLError    an expression that Prometheus would accept and answer with nothing, or with nonsense

Checked here: a rate of a gauge, a raw counter that is summed or compared, a label the series does not have, a value
outside a closed set, a bound outside the layout, a quantile without `le`, operands whose labels differ.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from typing import Self

from exporter.catalogue import ENGINE, REPLICA, Label
from prometheus.windows import TimeScale, Window

__all__ = ["LE", "TARGET_LABELS", "Expr", "Matcher", "PromQLError", "Seconds", "Shape", "number_text", "quoted"]

LE = Label(name="le", help="upper bound of a histogram bucket")
TARGET_LABELS = (REPLICA, ENGINE)
"""Labels that service discovery puts on every series of a replica."""


class PromQLError(Exception):
    """An expression that Prometheus would accept and answer with nothing, or with nonsense."""


class Shape(Enum):
    """What the samples of an expression are."""

    COUNTER = "a raw counter"
    VALUE = "values"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """The length of a span as a number of seconds; shrinks with the time scale as the span does."""

    span: timedelta


Part = str | timedelta | Seconds
Number = Decimal | int | Seconds


def number_text(number: Decimal | int) -> str:
    """Print a number exactly and without exponent: `0.05`, `14.4`, `20`. A float would bring its error along."""
    if isinstance(number, float):
        raise PromQLError(f"expected a Decimal or a whole number, got the float {number!r}")
    text = format(Decimal(number), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def quoted(text: str) -> str:
    """Print text as a PromQL string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Matcher:
    """One condition on a label."""

    label: Label
    operator: str
    values: tuple[str, ...]

    @classmethod
    def equal(cls, label: Label, value: str) -> Self:
        """Match series whose label has the value."""
        return cls(label=label, operator="=", values=(value,))

    @classmethod
    def unequal(cls, label: Label, value: str) -> Self:
        """Match series whose label has another value, or is missing."""
        return cls(label=label, operator="!=", values=(value,))

    @classmethod
    def among(cls, label: Label, values: Iterable[str]) -> Self:
        """Match series whose label has one of the values."""
        return cls._several(label, "=", values)

    @classmethod
    def outside(cls, label: Label, values: Iterable[str]) -> Self:
        """Match series whose label has none of the values, or is missing."""
        return cls._several(label, "!=", values)

    @classmethod
    def _several(cls, label: Label, operator: str, values: Iterable[str]) -> Self:
        some = tuple(values)
        regex = {"=": "=~", "!=": "!~"}[operator]
        return cls(label=label, operator=operator if len(some) == 1 else regex, values=some)

    def __post_init__(self) -> None:
        """Refuse a value outside the label's closed set."""
        for value in self.values:
            if self.label.values and value and value not in self.label.values:
                known = ", ".join(self.label.values)
                raise PromQLError(f"label {self.label.name}: expected one of {known}, got {value!r}")

    @property
    def text(self) -> str:
        """The matcher as PromQL."""
        value = "|".join(map(_literal, self.values)) if "~" in self.operator else self.values[0]
        return f"{self.label.name}{self.operator}{quoted(value)}"


def _literal(text: str) -> str:
    """Quote text for RE2, which anchors the whole expression itself."""
    return "".join(f"\\{char}" if char in r"\.+*?()|[]{}^$" else char for char in text)


_BINDING = {
    **dict.fromkeys(("or",), 1),
    **dict.fromkeys(("and", "unless"), 2),
    **dict.fromkeys(("==", "!=", ">", ">=", "<", "<="), 3),
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("*", "/"), 5),
}
_TIGHTEST = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Expr:
    """An expression. `labels` are those its series can carry; `binding` is how tightly its outermost operator binds."""

    parts: tuple[Part, ...]
    labels: frozenset[str] = frozenset()
    shape: Shape = Shape.VALUE
    binding: int = _TIGHTEST

    def text(self, scale: TimeScale | None = None) -> str:
        """Print the expression; spans shrink with the scale."""
        scale = scale or TimeScale()
        return "".join(_part_text(part, scale) for part in self.parts)

    def __str__(self) -> str:
        """Answer the expression on the real time scale."""
        return self.text()

    def rate(self, window: Window) -> "Expr":
        """Per-second rate of a raw counter over the window."""
        if self.shape is not Shape.COUNTER:
            raise PromQLError(f"rate() needs a raw counter, got {self.shape.value}: {self}")
        return replace(self, parts=("rate(", *self.parts, "[", window.span, "])"), shape=Shape.VALUE)

    def over_time(self, function: str, span: timedelta, *, step: timedelta | None = None) -> "Expr":
        """Apply `max`, `min`, `avg`, `sum`, `count` or `last` to the values of each series within the span.

        With a step, only the values at its multiples count.
        """
        self._refuse_counter(f"{function}_over_time()")
        resolution: tuple[Part, ...] = (":", step) if step else ()
        return replace(self, parts=(f"{function}_over_time(", *self.parts, "[", span, *resolution, "])"))

    def changes(self, span: timedelta) -> "Expr":
        """Count how often each series changed its value within the span."""
        self._refuse_counter("changes()")
        return replace(self, parts=("changes(", *self.parts, "[", span, "])"))

    def resets(self, span: timedelta) -> "Expr":
        """Count how often a raw counter fell within the span: each time its process restarted."""
        if self.shape is not Shape.COUNTER:
            raise PromQLError(f"resets() needs a raw counter, got {self.shape.value}: {self}")
        return replace(self, parts=("resets(", *self.parts, "[", span, "])"), shape=Shape.VALUE)

    def busiest(self, share: Decimal, span: timedelta) -> "Expr":
        """Answer the value that each series did not exceed for `share` of the span."""
        self._refuse_counter("quantile_over_time()")
        return replace(self, parts=(f"quantile_over_time({number_text(share)}, ", *self.parts, "[", span, "])"))

    def forecast(self, span: timedelta, ahead: timedelta) -> "Expr":
        """Extend the straight line through the values within the span, by so much time."""
        self._refuse_counter("predict_linear()")
        return replace(self, parts=("predict_linear(", *self.parts, "[", span, "], ", Seconds(span=ahead), ")"))

    def before(self, span: timedelta) -> "Expr":
        """Select the series that there were so long ago."""
        return replace(self, parts=(*self.parts, " offset ", span))

    def marked(self, label: Label, value: str) -> "Expr":
        """Put a label on every series, in place of what it said before."""
        self._refuse_counter("label_replace()")
        parts = ("label_replace(", *self.parts, f', {quoted(label.name)}, {quoted(value)}, "", "")')
        return Expr(parts=parts, labels=self.labels | {label.name})

    def absent(self, span: timedelta) -> "Expr":
        """Answer 1 without labels if there was no sample within the span, else nothing."""
        return Expr(parts=("max(absent_over_time(", *self.parts, "[", span, "]))"))

    def median(self, *by: Label) -> "Expr":
        """Answer the median over everything but the labels named."""
        self._refuse_counter("quantile()")
        self._require(*by)
        names = ", ".join(label.name for label in by)
        return Expr(
            parts=(f"quantile by ({names}) (0.5, ", *self.parts, ")"), labels=frozenset(label.name for label in by)
        )

    def aggregate(self, function: str, *by: Label) -> "Expr":
        """Aggregate (`sum`, `max`, `min`, `avg`, `count`) over everything but the labels named."""
        if function != "count":  # series are counted, not what they say
            self._refuse_counter(f"{function}()")
        self._require(*by)
        names = ", ".join(label.name for label in by)
        head = f"{function} by ({names}) (" if by else f"{function}("
        return Expr(parts=(head, *self.parts, ")"), labels=frozenset(label.name for label in by))

    def quantile(self, share: Decimal) -> "Expr":
        """Estimate a quantile from bucket rates; a histogram without observations gives nothing instead of NaN."""
        self._refuse_counter("histogram_quantile()")
        self._require(LE)
        estimate = Expr(
            parts=(f"histogram_quantile({number_text(share)}, ", *self.parts, ")"), labels=self.labels - {LE.name}
        )
        return estimate.compare(">=", 0)

    def call(self, function: str, *arguments: Decimal | int) -> "Expr":
        """Apply a function that works sample by sample, such as clamp_min."""
        self._refuse_counter(f"{function}()")
        tail = "".join(f", {number_text(argument)}" for argument in arguments)
        return Expr(parts=(f"{function}(", *self.parts, f"{tail})"), labels=self.labels)

    def age(self) -> "Expr":
        """Seconds from each sample, a Unix time, until now."""
        self._refuse_counter("time()")
        binding = _BINDING["-"]
        return Expr(parts=("time() - ", *_operand(self, binding + 1)), labels=self.labels, binding=binding)

    def compare(self, operator: str, right: "Expr | Number") -> "Expr":
        """Keep the samples for which the comparison holds."""
        return self._binary(operator, right)

    def __add__(self, right: "Expr | Number") -> "Expr":
        """Add, series by series."""
        return self._binary("+", right)

    def __sub__(self, right: "Expr | Number") -> "Expr":
        """Subtract, series by series."""
        return self._binary("-", right)

    def __mul__(self, right: "Expr | Number") -> "Expr":
        """Multiply, series by series."""
        return self._binary("*", right)

    def __truediv__(self, right: "Expr | Number") -> "Expr":
        """Divide, series by series."""
        return self._binary("/", right)

    def __rsub__(self, left: Decimal | int) -> "Expr":
        """Subtract every sample from a number."""
        self._refuse_counter("-")
        parts = (f"{number_text(left)} - ", *_operand(self, _BINDING["-"] + 1))
        return Expr(parts=parts, labels=self.labels, binding=_BINDING["-"])

    def minimum(self, other: "Expr") -> "Expr":
        """Take the smaller sample of both sides, which PromQL has no function for."""
        return self.compare("<=", other).union(other)

    def union(self, *others: "Expr") -> "Expr":
        """Join series of both sides; where both have the same labels, the left one stays."""
        return self._set("or", others)

    def intersect(self, *others: "Expr", on: tuple[Label, ...] = ()) -> "Expr":
        """Keep the series that every other side has as well, compared by all labels or by those named."""
        return self._set("and", others, on)

    def without(self, *others: "Expr", on: tuple[Label, ...] = ()) -> "Expr":
        """Drop the series that another side has, compared by all labels or by those named."""
        return self._set("unless", others, on)

    def unless_any(self, other: "Expr") -> "Expr":
        """Drop everything while another side has any series at all."""
        binding = _BINDING["unless"]
        parts = (*_operand(self, binding), "\nunless on () ", *_operand(other, binding + 1))
        return replace(self, parts=parts, binding=binding)

    def per(self, info: "Expr", on: tuple[Label, ...]) -> "Expr":
        """Repeat each sample for every series of `info`, constant 1, that agrees in the labels named; under its labels.

        `self` may have one sample per value of those labels, or Prometheus refuses to answer.
        """
        self._refuse_counter("*")
        self._require(*on)
        info._require(*on)  # noqa: SLF001 - of the same class
        binding = _BINDING["*"]
        word = f" * on ({', '.join(label.name for label in on)}) group_left () "
        parts = (*_operand(info, binding), word, *_operand(self, binding + 1))
        return Expr(parts=parts, labels=info.labels, binding=binding)

    def above(self, limit: "Expr", on: tuple[Label, ...]) -> "Expr":
        """Keep the samples above the limit that agrees in the labels named, of which each value has one limit."""
        self._refuse_counter(">")
        self._require(*on)
        limit._require(*on)  # noqa: SLF001 - of the same class
        binding = _BINDING[">"]
        word = f" > on ({', '.join(label.name for label in on)}) group_left () "
        parts = (*_operand(self, binding), word, *_operand(limit, binding + 1))
        return Expr(parts=parts, labels=self.labels, binding=binding)

    def _binary(self, operator: str, right: "Expr | Number") -> "Expr":
        self._refuse_counter(operator)
        if isinstance(right, Expr):
            right._refuse_counter(operator)  # noqa: SLF001 - of the same class
            if right.labels and right.labels != self.labels:
                raise PromQLError(f"{operator}: labels differ, nothing would match: {self} and {right}")
            tail: tuple[Part, ...] = _operand(right, _BINDING[operator] + 1)
        else:
            tail = (right,) if isinstance(right, Seconds) else (number_text(right),)
        binding = _BINDING[operator]
        parts = (*_operand(self, binding), f" {operator} ", *tail)
        return Expr(parts=parts, labels=self.labels, binding=binding)

    def _set(self, operator: str, others: tuple["Expr", ...], on: tuple[Label, ...] = ()) -> "Expr":
        joined = self
        for other in others:
            joined = joined._joined(operator, other, on)
        return joined

    def _joined(self, operator: str, other: "Expr", on: tuple[Label, ...]) -> "Expr":
        self._require(*on)
        other._require(*on)  # noqa: SLF001 - of the same class
        if operator != "or" and not on and other.labels != self.labels:
            raise PromQLError(f"{operator}: labels differ, nothing would match: {self} and {other}")
        binding = _BINDING[operator]
        word = f"\n{operator} on ({', '.join(label.name for label in on)}) " if on else f"\n{operator} "
        return Expr(
            parts=(*_operand(self, binding), word, *_operand(other, binding + 1)),
            labels=self.labels | other.labels if operator == "or" else self.labels,
            shape=self.shape,
            binding=binding,
        )

    def _require(self, *labels: Label) -> None:
        for label in labels:
            if label.name not in self.labels:
                known = ", ".join(sorted(self.labels)) or "none"
                raise PromQLError(f"no label {label.name!r} here (labels: {known}): {self}")

    def _refuse_counter(self, operation: str) -> None:
        if self.shape is Shape.COUNTER:
            raise PromQLError(f"{operation} would hide counter resets; take the rate first: {self}")


def _operand(expr: Expr, binding: int) -> tuple[Part, ...]:
    """Put parentheses around an operand that binds less tightly than its place demands."""
    return expr.parts if expr.binding >= binding else ("(", *expr.parts, ")")


def _part_text(part: Part, scale: TimeScale) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Seconds):
        return number_text(Decimal(scale.span(part.span) // timedelta(milliseconds=1)) / 1000)
    return scale.text(part)
