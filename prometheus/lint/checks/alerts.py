"""Alerts: told apart, routed, understood, and there as long as the trouble lasts."""

import re
from collections.abc import Iterator

from prometheus.lint.check import Check, Expression, Finding
from prometheus.lint.infer import COMPARISONS
from prometheus.lint.problem import Severity
from prometheus.lint.tree import Binary, Call, selectors

__all__ = ["CHECKS"]

_SEVERITIES = ("page", "ticket", "heartbeat", "note")
_VALUE = re.compile(r"\$value\b|\.Value\b")
_LABEL = re.compile(r"\$labels\.(\w+)")
_ALWAYS = frozenset({"alertname"})


def _severity(expression: Expression) -> Iterator[Finding]:
    alert = expression.alert
    given = alert.labels.get("severity") if alert else None
    if alert and given not in _SEVERITIES:
        wrong = f"has the severity {given!r}" if given else "has no severity"
        message = f"{alert.name} {wrong}, so no receiver is meant"
        yield Finding(message=message, fix=f"labels: severity: {', '.join(_SEVERITIES)}")


def _summary(expression: Expression) -> Iterator[Finding]:
    if expression.alert and not expression.alert.annotations.get("summary"):
        message = f"{expression.alert.name} has no summary: the phone would show its name alone"
        yield Finding(message=message, fix="annotations: summary: what is wrong, with {{ $labels.model }}")


def _runbook(expression: Expression) -> Iterator[Finding]:
    if expression.alert and not expression.alert.annotations.get("runbook_url"):
        message = f"{expression.alert.name} has no runbook"
        yield Finding(message=message, fix="annotations: runbook_url: where to read what to do")


def _value_in_label(expression: Expression) -> Iterator[Finding]:
    for label, text in expression.rule.labels.items() if expression.rule else ():
        if _VALUE.search(text):
            message = f"label {label} holds the value: each new value is another alert, and `for` never elapses"
            yield Finding(message=message, fix="put the value into an annotation")


def _lost_labels(expression: Expression) -> Iterator[Finding]:
    """Find absent() of something whose labels it cannot tell: the alert does not say who is absent."""
    alert = expression.alert
    if not alert or set(alert.labels) - {"severity"}:
        return
    for node, meaning in expression.nodes():
        if isinstance(node, Call) and node.function in {"absent", "absent_over_time"}:
            asked = {each.label for selector in selectors(node) for each in selector.conditions}
            lost = sorted(asked - (meaning.labels or set()))
            if lost:
                yield Finding(
                    at=node.at,
                    message=f"{node.function}() cannot tell {', '.join(lost)}: it knows what a bare selector equals",
                    fix="give the rule the labels, or compare with a series that says what should be there (unless on)",
                )


def _unknown_label_in_text(expression: Expression) -> Iterator[Finding]:
    alert, labels = expression.alert, expression.meaning.labels
    if not alert or labels is None:
        return
    known = labels | set(alert.labels) | _ALWAYS
    for key, text in alert.annotations.items():
        for label in sorted(set(_LABEL.findall(text)) - known):
            message = f"annotation {key} names the label {label}, which the alert does not have: it would be empty"
            yield Finding(message=message, fix=f"labels there: {', '.join(sorted(known))}")


def _interrupted_wait(expression: Expression) -> Iterator[Finding]:
    """Find a `for` that starts anew whenever a scrape fails, as they do when a replica is in trouble."""
    root = expression.root
    if not expression.alert or not expression.alert.delay or not isinstance(root, Binary):
        return
    if root.operator in COMPARISONS and expression.meanings[root.left].is_scraped:
        yield Finding(
            at=root.left.at,
            message="one failed scrape empties this and starts `for` anew",
            fix="look back over several scrapes: max_over_time(…[1m]), avg_over_time(…[5m])",
        )


CHECKS = (
    Check(name="severity", find=_severity),
    Check(name="summary", find=_summary),
    Check(name="runbook", find=_runbook, severity=Severity.WARNING),
    Check(name="value-in-label", find=_value_in_label),
    Check(name="lost-labels", find=_lost_labels),
    Check(name="unknown-label-in-text", find=_unknown_label_in_text),
    Check(name="interrupted-wait", find=_interrupted_wait, severity=Severity.WARNING),
)
