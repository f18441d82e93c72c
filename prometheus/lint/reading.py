"""Reading: the text of an expression -> a tree with positions.

In: text. Out: `Node`, or ExpressionError with the parser's words. The grammar is that of promql-parser, the parser of
GreptimeDB; it gives no positions, so a second look at the text finds them.

    ExpressionError    Prometheus would refuse the expression, or it is nested too deeply to be judged
"""

from collections.abc import Callable
from typing import Any

import promql_parser as parser

from prometheus.lint.tokens import Cursor
from prometheus.lint.tree import (
    Aggregate,
    Binary,
    Call,
    Condition,
    Negation,
    Node,
    Number,
    Selector,
    Subquery,
    Text,
    children,
)

__all__ = ["ExpressionError", "read"]

_OPERATORS = (
    (parser.MatchOp.Equal, "="),
    (parser.MatchOp.NotEqual, "!="),
    (parser.MatchOp.Re, "=~"),
    (parser.MatchOp.NotRe, "!~"),
)
_MANY = ((parser.VectorMatchCardinality.ManyToOne, "left"), (parser.VectorMatchCardinality.OneToMany, "right"))


_DEEPEST = 300
"""Operators and calls around each other; every look at the tree goes down one by one."""
_LONGEST = 5000
"""Words and signs; of twice as many around each other the parser dies, and Python with it."""


class ExpressionError(Exception):
    """Prometheus would refuse the expression, or nobody could judge it."""


def read(text: str) -> Node:
    """Parse an expression; raises ExpressionError."""
    cursor = Cursor(text)
    if cursor.size > _LONGEST:
        raise ExpressionError(f"more than {_LONGEST} words and signs: record parts of it")
    try:
        parsed = parser.parse(text)
    except ValueError as error:
        raise ExpressionError(str(error)) from error
    try:
        root = _node(parsed, cursor)
    except RecursionError:
        root = None
    if root is None or _depth(root) > _DEEPEST:
        raise ExpressionError(f"more than {_DEEPEST} operators and calls around each other: record parts of it")
    return root


def _depth(root: Node) -> int:
    depth = 0
    level: tuple[Node, ...] = (root,)
    while level:
        depth, level = depth + 1, tuple(child for node in level for child in children(node))
    return depth


def _node(parsed: Any, cursor: Cursor) -> Node:  # noqa: ANN401 - the parser's union of classes
    while isinstance(parsed, parser.ParenExpr):
        parsed = parsed.expr
    return _READERS[type(parsed)](parsed, cursor)


def _selector(parsed: parser.VectorSelector, cursor: Cursor) -> Selector:
    name_at = cursor.word(parsed.name) if parsed.name else None
    braces = cursor.braces(follow=parsed.name is not None)
    at = name_at if name_at is not None else braces.at if braces else 0
    written = parsed.matchers.matchers
    places = [*(braces.conditions() if braces else ()), *[at] * len(written)]
    conditions = tuple(
        Condition(
            at=place,
            label=matcher.name,
            operator=next(sign for kind, sign in _OPERATORS if matcher.op == kind),
            value=matcher.value,
        )
        for matcher, place in zip(written, places, strict=False)
    )
    named = next((each for each in conditions if each.label == "__name__" and each.operator == "="), None)
    return Selector(
        at=at,
        metric=parsed.name or (named.value if named else None),
        conditions=tuple(each for each in conditions if each is not named),
        is_shifted=parsed.offset is not None or parsed.at is not None,
    )


def _range(parsed: parser.MatrixSelector, cursor: Cursor) -> Selector:
    plain = _selector(parsed.vector_selector, cursor)
    return Selector(
        at=plain.at,
        metric=plain.metric,
        conditions=plain.conditions,
        span=parsed.range,
        is_shifted=plain.is_shifted,
    )


def _call(parsed: parser.Call, cursor: Cursor) -> Call:
    at = cursor.word(parsed.func.name, before_parenthesis=True)
    return Call(at=at, function=parsed.func.name, arguments=tuple(_node(each, cursor) for each in parsed.args))


def _aggregate(parsed: parser.AggregateExpr, cursor: Cursor) -> Aggregate:
    operation = str(parsed.op)
    at = cursor.word(operation, before_parenthesis=True)
    modifier = parsed.modifier
    labels = tuple(modifier.labels) if modifier else None
    is_by = modifier is not None and modifier.type == parser.AggModifierType.By
    return Aggregate(
        at=at,
        operation=operation,
        parameter=_node(parsed.param, cursor) if parsed.param is not None else None,
        inner=_node(parsed.expr, cursor),
        by=labels if is_by else None,
        without=None if is_by else labels,
    )


def _binary(parsed: parser.BinaryExpr, cursor: Cursor) -> Binary:
    operator = str(parsed.op)
    left = _node(parsed.lhs, cursor)
    at = cursor.sign(operator)
    right = _node(parsed.rhs, cursor)
    modifier = parsed.modifier
    matching = modifier.matching if modifier else None
    labels = tuple(matching.labels) if matching else None
    is_on = matching is not None and matching.type == parser.LabelModifierType.Include
    return Binary(
        at=at,
        operator=operator,
        left=left,
        right=right,
        on=labels if is_on else None,
        ignoring=None if is_on else labels,
        many=next((side for card, side in _MANY if modifier and modifier.card == card), None),
        included=tuple(modifier.group_labels or ()) if modifier else (),
        gives_bool=bool(modifier and modifier.return_bool),
    )


def _subquery(parsed: parser.SubqueryExpr, cursor: Cursor) -> Subquery:
    inner = _node(parsed.expr, cursor)
    return Subquery(at=inner.at, inner=inner)


def _negation(parsed: parser.UnaryExpr, cursor: Cursor) -> Negation:
    at = cursor.sign("-")
    return Negation(at=at, inner=_node(parsed.expr, cursor))


def _number(parsed: parser.NumberLiteral, cursor: Cursor) -> Number:
    return Number(at=cursor.kind("number"), value=parsed.val)


def _text(parsed: parser.StringLiteral, cursor: Cursor) -> Text:
    return Text(at=cursor.kind("string"), value=parsed.val)


_READERS: dict[type, Callable[[Any, Cursor], Node]] = {
    parser.VectorSelector: _selector,
    parser.MatrixSelector: _range,
    parser.Call: _call,
    parser.AggregateExpr: _aggregate,
    parser.BinaryExpr: _binary,
    parser.SubqueryExpr: _subquery,
    parser.UnaryExpr: _negation,
    parser.NumberLiteral: _number,
    parser.StringLiteral: _text,
}
