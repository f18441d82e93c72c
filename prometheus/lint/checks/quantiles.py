"""Quantiles and ratios: numbers that cannot be averaged, subtracted or multiplied, and that are NaN without traffic."""

from collections.abc import Iterator

from exporter.catalogue import bound_text
from prometheus.lint.check import Check, Expression, Finding
from prometheus.lint.infer import COMPARISONS
from prometheus.lint.meaning import Meaning, Shape
from prometheus.lint.tree import Aggregate, Binary, Call, Node, Number, selectors

__all__ = ["CHECKS"]

_AVERAGES = frozenset({"avg", "sum", "avg_over_time", "sum_over_time"})
_SUMS = frozenset({"sum", "count", "group", "count_values", "topk", "bottomk", "limitk", "limit_ratio"})


def _quantile_without_le(expression: Expression) -> Iterator[Finding]:
    for node, of in _quantiles(expression):
        if not of.has("le"):
            message = "histogram_quantile() finds no buckets: `le` is aggregated away, and there is no result"
            yield Finding(at=node.at, message=message, fix="keep it: sum by (model, le) (rate(…_bucket[5m]))")


def _quantile_per_rank(expression: Expression) -> Iterator[Finding]:
    for node, of in _quantiles(expression):
        if of.is_ranked and of.has("le"):
            message = "one quantile for every data-parallel rank of every replica"
            yield Finding(at=node.at, message=message, fix="add the buckets up first: sum by (model, replica, le) (…)")


def _quantiles(expression: Expression) -> Iterator[tuple[Call, Meaning]]:
    for node, _ in expression.nodes():
        if isinstance(node, Call) and node.function == "histogram_quantile":
            yield node, expression.meanings[node.arguments[1]]


def _bucket_maximum(expression: Expression) -> Iterator[Finding]:
    """Find buckets taken from different replicas: together they are no histogram."""
    for node, meaning in expression.nodes():
        if isinstance(node, Aggregate) and node.operation not in _SUMS:
            of = expression.meanings[node.inner]
            if meaning.labels is not None and "le" in meaning.labels and of.shape is Shape.RATE:
                message = f"{node.operation}() per bucket mixes replicas: the counts are cumulative no more"
                yield Finding(at=node.at, message=message, fix="use sum, or choose one replica")


def _added_buckets(expression: Expression) -> Iterator[Finding]:
    """Find sums over the bounds of a histogram, in which a request counts once for each bound it stays within."""
    in_quantiles = {node.arguments[1] for node, _ in _quantiles(expression)}
    for node, meaning in expression.nodes():
        if not isinstance(node, Aggregate) or node.operation not in {"sum", "avg"} or node in in_quantiles:
            continue
        before, after = expression.meanings[node.inner].labels, meaning.labels
        if before is None or after is None or "le" not in before - after:
            continue
        for selector in selectors(node.inner):
            known = expression.vocabulary.meaning(selector.metric)
            is_told = any(each.label == "le" and each.operator in {"=", "=~"} for each in selector.conditions)
            if known and known.has("le") and known.bounds and not is_told:
                message = f"{node.operation}() adds up buckets: a request counts once for each bound it stays within"
                yield Finding(
                    at=node.at, message=message, fix='choose one, le="2.0", or take what counts them: …_count'
                )
                break


def _averaged_ratio(expression: Expression) -> Iterator[Finding]:
    for node, _ in expression.nodes():
        match node:
            case Aggregate(operation=name):
                of = expression.meanings[node.inner]
            case Call(function=name) if node.arguments:
                of = expression.meanings[node.arguments[0]]
            case _:
                continue
        if name in _AVERAGES and of.shape in {Shape.RATIO, Shape.QUANTILE}:
            message = f"{name}() of {of.shape.value} weighs a quiet replica or minute like a busy one"
            fix = "add up what it is made of, and take the ratio or the quantile last; max() and min() are fine"
            yield Finding(at=node.at, message=message, fix=fix)


def _difference_of_quantiles(expression: Expression) -> Iterator[Finding]:
    for node, left, right in _operations(expression, {"-"}):
        if left.shape is right.shape is Shape.QUANTILE:
            message = "the difference of two quantiles is not the quantile of the difference, and bounds may differ"
            yield Finding(at=node.at, message=message, fix="compare means: rate(…_sum[5m]) / rate(…_count[5m])")


def _product_of_ratios(expression: Expression) -> Iterator[Finding]:
    for node, left, right in _operations(expression, {"*"}):
        if left.shape is right.shape is Shape.RATIO:
            message = "the product of two shares assumes that they have nothing to do with each other"
            yield Finding(at=node.at, message=message, fix="only bounds are known: max(0, a + b - 1) to min(a, b)")


def _negated_comparison(expression: Expression) -> Iterator[Finding]:
    """Find conditions that hold for NaN, which is what quantiles and ratios are at night."""
    for node, left, right in _operations(expression, {*COMPARISONS, "unless"}):
        is_negated = node.operator == "!=" and (left.may_be_nan or right.may_be_nan)
        if node.operator == "unless":
            is_negated = _compares_nan(node.right, expression)
        elif _wants_false(node):
            is_negated = is_negated or _compares_nan(node.left, expression, gives_bool=True)
        if is_negated:
            message = "without traffic the value is NaN: every comparison with it is false, and its negation true"
            yield Finding(
                at=node.at, message=message, fix="write what is wrong (`value > threshold`), and a floor on traffic"
            )


def _compares_nan(node: Node, expression: Expression, *, gives_bool: bool = False) -> bool:
    if not isinstance(node, Binary) or node.operator not in COMPARISONS or node.gives_bool is not gives_bool:
        return False
    return any(expression.meanings[side].may_be_nan for side in (node.left, node.right))


def _wants_false(node: Binary) -> bool:
    """Tell whether a comparison with 0 or 1 holds for 0, which is what a false comparison gives."""
    value = node.right.value if isinstance(node.right, Number) else None
    return (node.operator, value) in {("==", 0), ("!=", 1), ("<", 1), ("<=", 0)}


def _impossible_threshold(expression: Expression) -> Iterator[Finding]:
    """Find comparisons that never hold, such as a burn rate above what the objective can reach."""
    for node, left, right in _operations(expression, COMPARISONS):
        if not left.is_series or right.is_series or right.low != right.high:
            continue
        limit = right.low
        never = {
            ">": limit >= left.high,
            ">=": limit > left.high,
            "<": limit <= left.low,
            "<=": limit < left.low,
            "==": not left.low <= limit <= left.high,
        }
        if never.get(node.operator):
            message = f"never true: the left side lies between {left.low:g} and {left.high:g}"
            fix = "choose a threshold within"
            if _counts(node.left):
                fix = "of nothing there is no count: write absent(…), or `expected unless …`"
            yield Finding(at=node.at, message=message, fix=fix)


def _counts(node: Node) -> bool:
    match node:
        case Aggregate(operation=name) | Call(function=name):
            return name in {"count", "group", "count_over_time"}
        case _:
            return False


def _below_first_bound(expression: Expression) -> Iterator[Finding]:
    for node, left, right in _operations(expression, COMPARISONS):
        if left.shape is Shape.QUANTILE and left.bounds and 0 < right.high < left.bounds[0]:
            first = bound_text(left.bounds[0])
            message = f"below the first bound {first} a quantile is a straight line from 0, and says nothing"
            yield Finding(at=node.at, message=message, fix=f"choose a threshold of {first} or more")


def _operations(
    expression: Expression, operators: set[str] | frozenset[str]
) -> Iterator[tuple[Binary, Meaning, Meaning]]:
    for node, _ in expression.nodes():
        if isinstance(node, Binary) and node.operator in operators:
            yield node, expression.meanings[node.left], expression.meanings[node.right]


CHECKS = (
    Check(name="quantile-without-le", find=_quantile_without_le),
    Check(name="quantile-per-rank", find=_quantile_per_rank),
    Check(name="bucket-maximum", find=_bucket_maximum),
    Check(name="added-buckets", find=_added_buckets),
    Check(name="averaged-ratio", find=_averaged_ratio),
    Check(name="difference-of-quantiles", find=_difference_of_quantiles),
    Check(name="product-of-ratios", find=_product_of_ratios),
    Check(name="negated-comparison", find=_negated_comparison),
    Check(name="impossible-threshold", find=_impossible_threshold),
    Check(name="below-first-bound", find=_below_first_bound),
)
