"""Rules of a story: the recording rules that the alert reads, and of the alerts itself alone. Also mutants of it."""

import re
from collections.abc import Iterator
from typing import Any

from tests.alerts.stories.situations import Story
from tests.prometheus.promtool import Group, Rules

__all__ = ["mutants", "rules_of", "with_mutants"]

Rule = dict[str, Any]

_LIMIT = re.compile(r"(?P<operator>[<>]=?|\*) (?P<number>\d+(?:\.\d+)?)(?! [<>])(?![\d.])")
_FEW = 10


def rules_of(story: Story) -> list[Group]:
    """Generate what the story needs, in the order of its stages."""
    groups = Rules(fleet=story.fleet, stages=story.stages).groups()
    for group in groups:
        group["rules"] = [rule for rule in group["rules"] if rule.get("alert", story.alert) == story.alert]
    return groups


def mutants(rule: Rule, step: int) -> Iterator[tuple[str, Rule]]:
    """Change each limit of a rule by a fifth, or by one if it is a small count, and `for` by one evaluation."""
    expr = rule["expr"]
    for found in _LIMIT.finditer(expr):
        start, end = found.span("number")
        for changed in _changed(found["operator"], found["number"]):
            around = expr[max(0, start - 60) : start]
            yield (
                f"at {start}: ...{around}{found['number']} -> {changed}",
                rule | {"expr": f"{expr[:start]}{changed}{expr[end:]}"},
            )
    delay = _seconds(rule.get("for", "0s"))
    for changed_delay in (delay - step, delay + step):
        if changed_delay >= 0:
            yield f"for {delay}s -> {changed_delay}s", rule | {"for": f"{changed_delay}s"}


def _changed(operator: str, number: str) -> tuple[str, ...]:
    value = float(number)
    if value == 0:
        return ()
    if operator != "*" and "." not in number and value < _FEW:
        return f"{value - 1:g}", f"{value + 1:g}"
    return f"{value * 0.8:.10g}", f"{value * 1.2:.10g}"


def _seconds(duration: str) -> int:
    return int(duration[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[duration[-1]]


def with_mutants(story: Story) -> tuple[list[Group], dict[str, str]]:
    """Put mutants of the story's rule beside it; answer the groups, and what was changed by the mutant's alertname."""
    groups = rules_of(story)
    changes: dict[str, str] = {}
    for group in groups:
        for rule in list(group["rules"]):
            if rule.get("alert") == story.alert and rule["labels"]["severity"] == story.severity.value:
                for change, mutant in mutants(rule, story.evaluate):
                    name = f"{story.alert}_{len(changes)}"
                    changes[name] = change
                    group["rules"].append(mutant | {"alert": name})
    return groups, changes
