"""Counters: rates of counters and of nothing else, one by one, before anything adds them up."""

from collections.abc import Iterator

from prometheus.lint.check import Check, Expression, Finding
from prometheus.lint.infer import KEEPING_AGGREGATES, RATES, SET_OPERATORS
from prometheus.lint.meaning import Meaning, Shape
from prometheus.lint.tree import Aggregate, Binary, Call, Node, Number, Subquery, selectors

__all__ = ["CHECKS"]

_COUNTERS = frozenset({Shape.COUNTER, Shape.SUM_OF_COUNTERS})
_OF_GAUGES = frozenset({"delta", "idelta", "deriv", "predict_linear", "double_exponential_smoothing"})
_OF_VALUES = frozenset(
    {
        *("avg_over_time", "min_over_time", "max_over_time", "sum_over_time", "quantile_over_time"),
        *("stddev_over_time", "stdvar_over_time", "histogram_quantile"),
    }
)
_HARMLESS = frozenset({"count", "group", "count_values", *KEEPING_AGGREGATES})


def _raw_counter(expression: Expression) -> Iterator[Finding]:
    """Find counters that are summed, compared or reckoned with as they are: a restart sets them back to 0."""
    in_rates = {
        inner
        for node, _ in expression.nodes()
        if isinstance(node, Call) and node.function in RATES and isinstance(node.arguments[0], Subquery)
        for inner in selectors(node)
    }
    for node, _ in expression.nodes():
        for operand, what in _uses(node):
            meaning = expression.meanings[operand]
            if meaning.shape is Shape.COUNTER and not in_rates & set(selectors(operand)):
                yield Finding(
                    at=operand.at,
                    message=f"{what} of a raw counter: it tells how long the process runs, and falls at a restart",
                    fix="take rate() or increase() first",
                )


def _uses(node: Node) -> Iterator[tuple[Node, str]]:
    """Yield the operands of a node that must not be raw counters, and what the node does with them."""
    match node:
        case Aggregate() if node.operation not in _HARMLESS:
            yield node.inner, f"{node.operation}()"
        case Call() if node.function in _OF_VALUES:
            yield node.arguments[-1], f"{node.function}()"
        case Binary() if node.operator not in SET_OPERATORS and not _is_difference_in_time(node):
            yield from ((side, f"`{node.operator}`") for side in (node.left, node.right))


def _is_difference_in_time(node: Binary) -> bool:
    """Tell the way to see a counter that is born at 1: `x - (x offset 5m or 0 * x)`."""
    if node.operator == "*":
        return any(isinstance(side, Number) and side.value == 0 for side in (node.left, node.right))
    return node.operator == "-" and any(each.is_shifted for each in selectors(node.right))


def _rate_of_gauge(expression: Expression) -> Iterator[Finding]:
    for node, of in _ranges(expression, RATES):
        if of.shape not in _COUNTERS and of.shape is not Shape.TEXT and _is_known(expression, node):
            name = node.function
            message = f"{name}() takes every fall for a restart, and what is below falls in the course of its life"
            fix = "for a gauge use delta() or deriv(); a rate needs no second rate"
            yield Finding(at=node.at, message=message, fix=fix)


def _delta_of_counter(expression: Expression) -> Iterator[Finding]:
    for node, of in _ranges(expression, _OF_GAUGES):
        if of.shape in _COUNTERS:
            message = f"{node.function}() of a counter is negative at a restart"
            yield Finding(at=node.at, message=message, fix="use rate() or increase()")


def _rate_of_sum(expression: Expression) -> Iterator[Finding]:
    """Find rates of sums, in which the restart of one replica looks like a burst of the others."""
    for node, of in _ranges(expression, RATES):
        if of.shape is Shape.SUM_OF_COUNTERS:
            message = f"{node.function}() of a sum takes the restart of one replica for traffic of all"
            yield Finding(
                at=node.at, message=message, fix="take the rate of each series, then the sum: sum(rate(x[5m]))"
            )


def _ranges(expression: Expression, functions: frozenset[str]) -> Iterator[tuple[Call, Meaning]]:
    for node, _ in expression.nodes():
        if isinstance(node, Call) and node.function in functions:
            yield node, expression.meanings[node.arguments[0]]


def _is_known(expression: Expression, node: Node) -> bool:
    return all(expression.vocabulary.get(each.metric or "") for each in selectors(node))


CHECKS = (
    Check(name="raw-counter", find=_raw_counter),
    Check(name="rate-of-gauge", find=_rate_of_gauge),
    Check(name="delta-of-counter", find=_delta_of_counter),
    Check(name="rate-of-sum", find=_rate_of_sum),
)
