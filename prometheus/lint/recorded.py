"""Recorded: what recording rules add to the vocabulary.

In: a `Vocabulary` and rules. Out: the vocabulary with the recorded series, each with the labels, values and limits that
its expression gives it; a rule that reads another's series waits for that one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from prometheus.lint.check import Rule
from prometheus.lint.infer import infer
from prometheus.lint.reading import ExpressionError, read
from prometheus.lint.tree import Node, selectors
from prometheus.lint.vocabulary import Vocabulary
from prometheus.lint.written import Written

__all__ = ["learn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recording:
    rule: Rule
    root: Node

    @property
    def sources(self) -> frozenset[str]:
        return frozenset(each.metric for each in selectors(self.root) if each.metric)


def learn(vocabulary: Vocabulary, written: Iterable[Written]) -> Vocabulary:
    """Add every series that the rules record."""
    waiting = _recordings(written)
    while waiting:
        names = {each.rule.name for each in waiting}
        ready = [each for each in waiting if not each.sources & (names - {each.rule.name})]
        for each in ready or waiting:
            vocabulary = _add(vocabulary, each)
        waiting = [each for each in waiting if each not in ready] if ready else []
    return vocabulary


def _recordings(written: Iterable[Written]) -> list[_Recording]:
    found = []
    for each in written:
        if each.rule and not each.rule.is_alert:
            try:
                found.append(_Recording(rule=each.rule, root=read(each.text)))
            except ExpressionError:
                continue  # it records nothing; the lint says so where it stands
    return found


def _add(vocabulary: Vocabulary, recording: _Recording) -> Vocabulary:
    meaning = infer(recording.root, vocabulary.meaning)[recording.root]
    constant = recording.rule.labels
    labels = None if meaning.labels is None else meaning.labels | constant.keys()
    known = vocabulary.values_of(labels or (), recording.sources, constant)
    return vocabulary.with_recorded(
        recording.rule.name, replace(known, meaning=meaning.but(labels=labels, is_scraped=False))
    )
