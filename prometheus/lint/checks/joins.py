"""Joins: series of both sides that meet, and one sample where one is meant."""

from collections.abc import Iterator

from prometheus.lint.check import Check, Expression, Finding, Use
from prometheus.lint.tree import Binary, Call, Number

__all__ = ["CHECKS"]


def _zero_without_labels(expression: Expression) -> Iterator[Finding]:
    for node in _binaries(expression):
        right = node.right
        is_constant = isinstance(right, Call) and right.function == "vector" and isinstance(right.arguments[0], Number)
        has_labels = expression.meanings[node.left].labels != frozenset()
        if node.operator == "or" and is_constant and node.on is None and has_labels:
            message = "vector(0) has no labels: it adds a series of its own and joins none of the left side"
            yield Finding(
                at=right.at, message=message, fix="write `or 0 * (what has the labels)`, or aggregate without by"
            )


def _different_labels(expression: Expression) -> Iterator[Finding]:
    for node in _binaries(expression):
        left, right = expression.meanings[node.left], expression.meanings[node.right]
        if node.operator == "or" or node.on is not None or not (left.is_series and right.is_series):
            continue
        if left.labels is None or right.labels is None:
            continue
        ignored = set(node.ignoring or ())
        if left.labels - ignored != right.labels - ignored:
            differ = ", ".join(sorted((left.labels ^ right.labels) - ignored))
            message = f"nothing matches: only one side of `{node.operator}` can have {differ}"
            yield Finding(at=node.at, message=message, fix="aggregate both sides by the same labels, or say on (…)")


def _binaries(expression: Expression) -> Iterator[Binary]:
    return (node for node, _ in expression.nodes() if isinstance(node, Binary))


def _per_rank(expression: Expression) -> Iterator[Finding]:
    if expression.use is not Use.LOOK and expression.meaning.is_ranked:
        yield Finding(
            at=expression.root.at,
            message="one sample for every data-parallel rank of a replica, where there is more than one",
            fix="aggregate: sum or max by (model, replica)",
        )


CHECKS = (
    Check(name="zero-without-labels", find=_zero_without_labels),
    Check(name="different-labels", find=_different_labels),
    Check(name="per-rank", find=_per_rank),
)
