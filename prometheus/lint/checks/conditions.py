"""Conditions: comparisons that always hold or never, whatever happens; alerts that fire at once or for ever."""

from collections.abc import Iterator
from math import isnan

from prometheus.lint.check import Check, Expression, Finding
from prometheus.lint.infer import COMPARISONS, SET_OPERATORS
from prometheus.lint.problem import Severity
from prometheus.lint.tree import Aggregate, Binary, Call, Negation, Node, Number, Subquery, selectors, walk
from prometheus.windows import duration_text

__all__ = ["CHECKS"]

_ABSENT = frozenset({"absent", "absent_over_time"})
_EACH = ("replica", "model")
"""Labels of which each value is something of its own, the finest first."""
_QUANTILES = frozenset({"quantile_over_time", "histogram_quantile"})


def _comparison_with_nan(expression: Expression) -> Iterator[Finding]:
    for node, _ in expression.nodes():
        if isinstance(node, Binary) and node.operator in COMPARISONS:
            for side in (node.left, node.right):
                if isinstance(side, Number) and isnan(side.value):
                    holds = "always true, for NaN as well" if node.operator == "!=" else "never true, not even for NaN"
                    message = f"NaN equals nothing and is neither more nor less: `{node.operator}` is {holds}"
                    yield Finding(at=node.at, message=message, fix="x != x finds what is NaN, x == x what is not")


def _filtered_absence(expression: Expression) -> Iterator[Finding]:
    """Find absent() of what a comparison keeps, of which there is one series for each replica or model."""
    for node, _ in expression.nodes():
        if not isinstance(node, Call) or node.function not in _ABSENT:
            continue
        asked = node.arguments[0]
        kept = asked.inner if isinstance(asked, Subquery) else asked
        if not isinstance(kept, Binary) or kept.operator not in COMPARISONS or kept.gives_bool:
            continue
        labels = expression.meanings[kept].labels or frozenset()
        each = next((label for label in _EACH if label in labels), None)
        if each and not _is_pinned(kept, each):
            message = f"{node.function}() of a comparison holds if it holds for none: one {each} hides all others"
            fix = "write what is wrong without absent: max_over_time(x[1m]) == 0, or `expected unless x == 1`"
            yield Finding(at=node.at, message=message, fix=fix)


def _is_pinned(node: Node, label: str) -> bool:
    conditions = (condition for selector in selectors(node) for condition in selector.conditions)
    return any(condition.label == label and condition.operator == "=" for condition in conditions)


def _bool_as_condition(expression: Expression) -> Iterator[Finding]:
    """Find alerts that ask for 0 or 1: both are samples, and an alert fires for every sample."""
    if expression.alert and _has_samples_whatever(expression.root):
        first = next(node for node in walk(expression.root) if isinstance(node, Binary) and node.gives_bool)
        message = f"`{first.operator} bool` gives 0 where it does not hold, and an alert fires for 0 as for 1"
        yield Finding(at=first.at, message=message, fix="leave bool out: then only what holds is left")


def _has_samples_whatever(node: Node) -> bool:
    """Tell whether an expression has a sample for each of its series, only because of bool."""
    match node:
        case Binary(operator=operator) if operator in COMPARISONS:
            return node.gives_bool
        case Binary(operator="or"):
            return _has_samples_whatever(node.left) or _has_samples_whatever(node.right)
        case Binary(operator=operator) if operator not in SET_OPERATORS or operator == "and":
            sides = [side for side in (node.left, node.right) if not isinstance(side, Number)]
            return bool(sides) and all(map(_has_samples_whatever, sides))
        case Aggregate(inner=inner) | Negation(inner=inner) | Subquery(inner=inner):
            return _has_samples_whatever(inner)
        case Call(arguments=(*_, last)) if node.function not in _ABSENT:
            return _has_samples_whatever(last)
        case _:
            return False


def _short_wait(expression: Expression) -> Iterator[Finding]:
    alert = expression.alert
    if alert and alert.delay and alert.delay < alert.interval:
        waits, interval = duration_text(alert.delay), duration_text(alert.interval)
        message = f"for: {waits} is over only when the rule is evaluated again, which is every {interval}"
        yield Finding(message=message, fix=f"for: {interval} says what happens; none fires at once")


def _share_above_one(expression: Expression) -> Iterator[Finding]:
    """Find quantiles given in percent: beyond 1 the answer is +Inf, whatever the data."""
    for node, _ in expression.nodes():
        share: Node | None = None
        if isinstance(node, Call) and node.function in _QUANTILES:
            share = node.arguments[0]
        elif isinstance(node, Aggregate) and node.operation == "quantile":
            share = node.parameter
        if isinstance(share, Number) and not 0 <= share.value <= 1:
            message = f"a quantile of {share.value:g} is infinite, whatever the data: it is a share of 0 to 1"
            yield Finding(at=share.at, message=message, fix=f"write {share.value / 100:g} for {share.value:g} %")


CHECKS = (
    Check(name="comparison-with-nan", find=_comparison_with_nan),
    Check(name="filtered-absence", find=_filtered_absence, severity=Severity.WARNING),
    Check(name="bool-as-condition", find=_bool_as_condition),
    Check(name="short-wait", find=_short_wait, severity=Severity.WARNING),
    Check(name="share-above-one", find=_share_above_one),
)
