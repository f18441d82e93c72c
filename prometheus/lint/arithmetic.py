"""Arithmetic: between which numbers the result of an operator lies.

In: two meanings and an operator. Out: the meaning of the result, but for its labels.

A share of bad requests burns a budget of 5 % at most 20 times as fast as it lasts; a threshold of 30 is never reached.
"""

from collections.abc import Callable
from math import inf, isnan, nextafter

from prometheus.lint.meaning import Meaning, Shape
from prometheus.lint.tree import Binary, Condition, Selector, selectors

__all__ = ["combined", "compared"]


def compared(operator: str, left: Meaning, right: Meaning, *, gives_bool: bool) -> Meaning:
    """Return what a comparison gives: 0 and 1, or the samples of the left side for which it holds, never NaN."""
    if gives_bool:
        return left.but(shape=Shape.VALUE, low=0.0, high=1.0, may_be_nan=False, is_scraped=False)
    kept = left if left.is_series else right
    low, high = kept.low, kept.high
    if kept is left and operator in {">", ">=", "=="}:
        low = max(low, nextafter(right.low, inf) if operator == ">" else right.low)
    if kept is left and operator in {"<", "<=", "=="}:
        high = min(high, nextafter(right.high, -inf) if operator == "<" else right.high)
    return kept.but(low=low, high=high, may_be_nan=kept.may_be_nan and operator == "!=")


def combined(node: Binary, left: Meaning, right: Meaning) -> Meaning:
    """Return what an arithmetic operator gives."""
    series = left if left.is_series else right
    low, high = _limits(node.operator, left, right)
    meaning = series.but(
        shape=_shape(node.operator, left, right),
        low=low,
        high=high,
        bounds=(),  # of another unit, perhaps
        is_ranked=left.is_ranked or right.is_ranked,
        is_scraped=left.is_scraped or right.is_scraped,
        may_be_nan=left.may_be_nan or right.may_be_nan,
    )
    if node.operator != "/" or not right.is_series:
        return meaning
    undefined = meaning.may_be_nan or right.low <= 0 <= right.high
    return meaning.but(high=min(high, 1.0) if _is_share(node) else high, may_be_nan=undefined)


def _shape(operator: str, left: Meaning, right: Meaning) -> Shape:
    if not (left.is_series and right.is_series):
        return left.shape if left.is_series else right.shape
    if operator == "/" and {left.shape, right.shape} <= {Shape.RATE, Shape.RATIO}:
        return Shape.RATIO
    return left.shape if left.shape is right.shape else Shape.VALUE


def _limits(operator: str, left: Meaning, right: Meaning) -> tuple[float, float]:
    """Combine the limits of both sides; a result that is not a number means that there is no limit."""
    match operator:
        case "+":
            ends = (left.low + right.low, left.high + right.high)
        case "-":
            ends = (left.low - right.high, left.high - right.low)
        case "*":
            ends = _extremes(lambda a, b: a * b, left, right)
        case "/" if right.low > 0 or right.high < 0 or (right.low == 0 and left.low >= 0):
            ends = _extremes(_quotient, left, right)
        case _:
            ends = (-inf, inf)
    return (-inf if isnan(ends[0]) else ends[0], inf if isnan(ends[1]) else ends[1])


def _extremes(operation: Callable[[float, float], float], left: Meaning, right: Meaning) -> tuple[float, float]:
    corners = [operation(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
    corners = [0.0 if isnan(corner) else corner for corner in corners]  # inf is no number here but an open limit
    return min(corners), max(corners)


def _quotient(dividend: float, divisor: float) -> float:
    if divisor:
        return dividend / divisor
    return inf if dividend else 0.0


def _is_share(node: Binary) -> bool:
    """Tell whether the dividend counts some of the events that the divisor counts."""
    part, whole = selectors(node.left), selectors(node.right)
    if len(part) != 1 or len(whole) != 1 or part[0].is_shifted or whole[0].is_shifted or part[0].span != whole[0].span:
        return False
    return _events(part[0]) == _events(whole[0]) and _conditions(whole[0]) <= _conditions(part[0])


def _events(selector: Selector) -> str:
    name = selector.metric or ""
    return name.removesuffix("_bucket").removesuffix("_count")


def _conditions(selector: Selector) -> set[tuple[str, str, str]]:
    def key(each: Condition) -> tuple[str, str, str]:
        return each.label, each.operator, each.value

    return {key(each) for each in selector.conditions}
