"""Infer: a tree -> what each of its nodes means.

In: a `Node` and a look-up of names. Out: {node: `Meaning`}. Where something is not known the answer is the widest one,
so that a check never speaks on a guess.
"""

from collections.abc import Callable
from math import inf

from prometheus.lint.arithmetic import combined, compared
from prometheus.lint.meaning import Meaning, Shape
from prometheus.lint.tree import (
    Aggregate,
    Binary,
    Call,
    Negation,
    Node,
    Number,
    Selector,
    Subquery,
    Text,
    children,
)

__all__ = ["COMPARISONS", "KEEPING_AGGREGATES", "RATES", "SET_OPERATORS", "Meanings", "infer"]

Meanings = dict[Node, Meaning]
Names = Callable[[str | None], Meaning | None]

COMPARISONS = frozenset({"==", "!=", ">", "<", ">=", "<="})
SET_OPERATORS = frozenset({"and", "or", "unless"})
RATES = frozenset({"rate", "irate", "increase"})
KEEPING_AGGREGATES = frozenset({"topk", "bottomk", "limitk", "limit_ratio"})
"""Aggregations that keep some series as they are."""

_COUNTING = frozenset({"count", "group", "count_values"})
_OF_ITS_OWN = frozenset(
    {
        *("timestamp", "changes", "resets", "count_over_time", "present_over_time", "histogram_count"),
        *("delta", "idelta", "deriv", "predict_linear", "double_exponential_smoothing", "histogram_avg"),
        *("histogram_sum", "histogram_fraction", "ts_of_last_over_time", "ts_of_max_over_time", "ts_of_min_over_time"),
    }
)
_LEAST = {"count_over_time": 1.0, "present_over_time": 1.0, "changes": 0.0, "resets": 0.0}
"""Below which these never are; of no samples there is no count."""
_WITHIN_LIMITS = frozenset(
    {"avg_over_time", "min_over_time", "max_over_time", "last_over_time", "quantile_over_time", "sort", "sort_desc"}
)
_NO_LABELS: frozenset[str] = frozenset()


def infer(root: Node, names: Names) -> Meanings:
    """Say what every node of an expression means."""
    found: Meanings = {}

    def visit(node: Node) -> Meaning:
        below = tuple(visit(child) for child in children(node))
        found[node] = _selected(node, names) if isinstance(node, Selector) else _composed(node, below)
        return found[node]

    visit(root)
    return found


def _composed(node: Node, below: tuple[Meaning, ...]) -> Meaning:
    match node:
        case Call():
            meaning = _called(node, below)
        case Aggregate():
            meaning = _aggregated(node, below[-1])
        case Binary():
            meaning = _binary(node, *below)
        case Negation():
            meaning = below[0].but(low=-below[0].high, high=-below[0].low)
        case Subquery():
            meaning = below[0].but(is_scraped=False)
        case Number(value=value):
            meaning = Meaning(shape=Shape.NUMBER, labels=_NO_LABELS, low=value, high=value)
        case _:
            meaning = Meaning(shape=Shape.TEXT, labels=_NO_LABELS)
    return meaning


def _selected(node: Selector, names: Names) -> Meaning:
    known = names(node.metric) or Meaning(shape=Shape.VALUE)
    one_rank = any(condition.label == "rank" for condition in node.conditions)
    return known.but(is_ranked=known.is_ranked and not one_rank, is_scraped=known.is_scraped and node.span is None)


def _called(node: Call, below: tuple[Meaning, ...]) -> Meaning:
    series = next((each for each in below if each.is_series), None)
    if series is None:
        return _made_of_numbers(node.function, below)
    special = _SPECIAL.get(node.function)
    return special(node, series) if special else _applied(node.function, series, below)


def _rate(_: Call, series: Meaning) -> Meaning:
    return series.but(shape=Shape.RATE, is_scraped=False, low=0.0, high=inf)


def _quantile(_: Call, series: Meaning) -> Meaning:
    labels = None if series.labels is None else series.labels - {"le"}
    high = series.bounds[-1] if series.bounds else inf
    return series.but(shape=Shape.QUANTILE, labels=labels, low=0.0, high=high, may_be_nan=True)


def _absence(node: Call, _: Meaning) -> Meaning:
    """Tell the labels that absent() can: those a selector demands by equality."""
    asked = node.arguments[0]
    conditions = asked.conditions if isinstance(asked, Selector) else ()
    demanded = [each.label for each in conditions]
    told = frozenset(each.label for each in conditions if each.operator == "=" and demanded.count(each.label) == 1)
    return Meaning(shape=Shape.VALUE, labels=told, low=1.0, high=1.0)


def _relabelled(node: Call, series: Meaning) -> Meaning:
    target = node.arguments[1]
    more = {target.value} if isinstance(target, Text) else set()
    return series.but(labels=None if series.labels is None else series.labels | more)


_SPECIAL: dict[str, Callable[[Call, Meaning], Meaning]] = {
    **dict.fromkeys(RATES, _rate),
    **dict.fromkeys(("absent", "absent_over_time"), _absence),
    **dict.fromkeys(("label_replace", "label_join"), _relabelled),
    "histogram_quantile": _quantile,
    "info": lambda _, series: series.but(labels=None),
    "scalar": lambda _, series: Meaning(shape=Shape.NUMBER, labels=_NO_LABELS, low=series.low, high=series.high),
}


def _applied(name: str, series: Meaning, below: tuple[Meaning, ...]) -> Meaning:
    """Apply a function that works series by series."""
    from_range = name.endswith("_over_time")
    series = series.but(is_scraped=series.is_scraped and not from_range)
    if name in _OF_ITS_OWN:
        low = _LEAST.get(name, -inf)
        return series.but(shape=Shape.VALUE, low=low, high=inf, bounds=(), may_be_nan=False)
    if name == "clamp_max":
        return series.but(high=min(series.high, below[-1].high))
    if name == "clamp_min":
        return series.but(low=max(series.low, below[-1].low))
    return series if name in _WITHIN_LIMITS else series.but(low=-inf, high=inf)


def _made_of_numbers(name: str, below: tuple[Meaning, ...]) -> Meaning:
    shape = Shape.VALUE if name == "vector" else Shape.NUMBER
    value = below[0] if name == "vector" else Meaning(shape=shape)
    return Meaning(shape=shape, labels=_NO_LABELS, low=value.low, high=value.high)


def _aggregated(node: Aggregate, inner: Meaning) -> Meaning:
    if node.operation in KEEPING_AGGREGATES:
        return inner
    labels = _grouped(node, inner)
    if node.operation in _COUNTING:
        return Meaning(shape=Shape.VALUE, labels=labels, low=1.0)  # of nothing there is no count
    is_one_of_them = node.operation in {"min", "max", "avg", "quantile"}
    return inner.but(
        shape=Shape.SUM_OF_COUNTERS if inner.shape is Shape.COUNTER else inner.shape,
        labels=labels,
        is_ranked=False,
        is_scraped=False,
        low=inner.low if is_one_of_them else 0.0 if inner.low >= 0 else -inf,
        high=inner.high if is_one_of_them else inf,
    )


def _grouped(node: Aggregate, inner: Meaning) -> frozenset[str] | None:
    made = {node.parameter.value} if isinstance(node.parameter, Text) else set()
    if node.without is not None:
        return None if inner.labels is None else inner.labels - set(node.without) | made
    return frozenset(label for label in node.by or () if inner.has(label)) | made


def _binary(node: Binary, left: Meaning, right: Meaning) -> Meaning:
    if node.operator in {"and", "unless"}:
        return left
    if node.operator == "or":
        return left.joined(right if right.shape is not Shape.VALUE or right.labels else right.but(shape=left.shape))
    labels = _matched(node, left, right)
    if node.operator in COMPARISONS:
        return compared(node.operator, left, right, gives_bool=node.gives_bool).but(labels=labels)
    return combined(node, left, right).but(labels=labels)


def _matched(node: Binary, left: Meaning, right: Meaning) -> frozenset[str] | None:
    """Return the labels of the result of a one-to-one or many-to-one match."""
    if not (left.is_series and right.is_series):
        return left.labels if left.is_series else right.labels
    many = {"left": left, "right": right}.get(node.many or "")
    if many:
        return None if many.labels is None else many.labels | set(node.included)
    if node.on is not None:
        return frozenset(node.on)
    if left.labels is None:
        return right.labels if right.labels is not None and not node.ignoring else None
    return left.labels - set(node.ignoring or ())
