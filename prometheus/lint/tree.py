"""Tree: a PromQL expression whose every node knows where it stands in the text. Data only."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

__all__ = [
    "Aggregate",
    "Binary",
    "Call",
    "Condition",
    "Negation",
    "Node",
    "Number",
    "Selector",
    "Subquery",
    "Text",
    "children",
    "selectors",
    "walk",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Node:
    """A part of an expression; `at` is its offset in the text. Two nodes are the same only if they are one object."""

    at: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Number(Node):
    """A number, or a duration where one is a number of seconds."""

    value: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Text(Node):
    """A string."""

    value: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Condition(Node):
    """One matcher of a selector."""

    label: str
    operator: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Selector(Node):
    """Series by name and conditions; `span` makes it a range."""

    metric: str | None
    conditions: tuple[Condition, ...]
    span: timedelta | None = None
    is_shifted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Call(Node):
    """A function and its arguments."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Aggregate(Node):
    """An aggregation; at most one of `by` and `without` is given."""

    operation: str
    inner: Node
    by: tuple[str, ...] | None = None
    without: tuple[str, ...] | None = None
    parameter: Node | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Binary(Node):
    """Two operands; `on` and `ignoring` as written, `included` the labels of group_left or group_right."""

    operator: str
    left: Node
    right: Node
    on: tuple[str, ...] | None = None
    ignoring: tuple[str, ...] | None = None
    many: str | None = None
    included: tuple[str, ...] = ()
    gives_bool: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subquery(Node):
    """An expression asked again and again over a span."""

    inner: Node


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Negation(Node):
    """The unary minus."""

    inner: Node


def children(node: Node) -> tuple[Node, ...]:
    """Return the operands and arguments of a node."""
    match node:
        case Call():
            return node.arguments
        case Aggregate():
            return (node.inner,) if node.parameter is None else (node.parameter, node.inner)
        case Binary():
            return (node.left, node.right)
        case Subquery() | Negation():
            return (node.inner,)
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """Yield the node and everything below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def selectors(node: Node) -> tuple[Selector, ...]:
    """Return the selectors of an expression."""
    return tuple(each for each in walk(node) if isinstance(each, Selector))
