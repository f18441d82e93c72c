"""Check: one thing that can be wrong with an expression or an alert, and what it needs to know to see it.

In: an `Expression` (tree, meanings, where it stands). Out: `Finding`s. The checks are in `prometheus.lint.checks`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum

from prometheus.lint.infer import Meanings
from prometheus.lint.meaning import Meaning
from prometheus.lint.problem import Severity
from prometheus.lint.tree import Node, walk
from prometheus.lint.vocabulary import Vocabulary
from prometheus.windows import INTERVAL

__all__ = ["Check", "Expression", "Finding", "Rule", "Use"]


class Use(Enum):
    """What an expression is for: a rule, a panel, or a look by a person or a notification."""

    RULE = "rule"
    PANEL = "panel"
    LOOK = "look"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule as it is written. Recording rules have no annotations, alerts have no constant name.

    `interval` is how often its group is evaluated.
    """

    name: str
    is_alert: bool
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    delay: timedelta = timedelta()
    interval: timedelta = INTERVAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """An expression that parses, and all that is known about it."""

    text: str
    root: Node
    meanings: Meanings
    vocabulary: Vocabulary
    use: Use
    rule: Rule | None = None

    @property
    def meaning(self) -> Meaning:
        """What the whole expression means."""
        return self.meanings[self.root]

    @property
    def alert(self) -> Rule | None:
        """The alert whose condition it is."""
        return self.rule if self.rule and self.rule.is_alert else None

    def nodes(self) -> Iterator[tuple[Node, Meaning]]:
        """Yield every node with its meaning."""
        for node in walk(self.root):
            yield node, self.meanings[node]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check found, at an offset of the expression or in the whole rule, and what to write instead."""

    message: str
    fix: str
    at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check; `find` looks for what `name` says."""

    name: str
    find: Callable[[Expression], Iterator[Finding]]
    severity: Severity = Severity.ERROR
