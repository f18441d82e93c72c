"""Selectors: names, labels, values and bounds that something has."""

import re
from collections.abc import Iterator

from prometheus.lint.check import Check, Expression, Finding, Use
from prometheus.lint.infer import RATES
from prometheus.lint.patterns import matches
from prometheus.lint.problem import Severity
from prometheus.lint.tree import Aggregate, Binary, Call, Condition, Selector, Subquery, Text, walk
from prometheus.windows import INTERVAL, duration_text

__all__ = ["CHECKS"]

_ENGINES = ("vllm:", "llamacpp:", "sglang:", "trtllm_", "tgi_")
_PLAIN = re.compile(r"(?:[^\\.+*?()|\[\]{}^$]|\\[^A-Za-z0-9]|\[[^\]\\^]\])*")
_LITERAL = re.compile(r"[^\\+*?()|\[\]{}^$]+")
_BRACKETED = re.compile(r"\[(.)\]|\\(.)")
_SHORTEST = 3 * INTERVAL
_OF_DIFFERENCES = frozenset({*RATES, "delta", "idelta", "deriv", "predict_linear"})
_VARIABLE = "$"
"""Begins a variable of a board, whose value is not known here."""


def _selectors(expression: Expression) -> Iterator[Selector]:
    return (node for node in walk(expression.root) if isinstance(node, Selector))


def _unknown_metric(expression: Expression) -> Iterator[Finding]:
    """Find names that no page shows and no rule records: the expression is empty for ever, and an alert green."""
    for node in _selectors(expression):
        if node.metric is None or expression.vocabulary.get(node.metric):
            continue
        alike = expression.vocabulary.closest(node.metric)
        fix = f"did you mean {alike}?" if alike else "exporter/METRICS.md lists every name"
        if node.metric.startswith(_ENGINES):
            fix = "engines are read through the exporter: use the llm_ name that exporter/METRICS.md gives for it"
        elif ":" in node.metric and not alike:
            fix = "name a series that a rule records"
        yield Finding(at=node.at, message=f"no page and no rule gives {node.metric}", fix=fix)


def _name_regex(expression: Expression) -> Iterator[Finding]:
    """Find selectors that do not say which series they want; a person who looks around may."""
    for node in _selectors(expression) if expression.use is not Use.LOOK else ():
        patterns = [condition for condition in node.conditions if condition.label == "__name__"]
        for pattern in patterns:
            message = "a pattern for the name takes in whatever an upgrade adds"
            yield Finding(at=pattern.at, message=message, fix="name the series, joined by `or`")
        if node.metric is None and not patterns:
            yield Finding(at=node.at, message="a selector without a name reads every series", fix="name the series")


def _unknown_label(expression: Expression) -> Iterator[Finding]:
    for node, _ in expression.nodes():
        if isinstance(node, Selector):
            labels = expression.meanings[node].labels
            for condition in node.conditions:
                if labels is not None and condition.label not in {*labels, "__name__"}:
                    yield _no_label(condition.at, node.metric or "it", condition.label, labels)
        elif isinstance(node, Aggregate):
            labels = expression.meanings[node.inner].labels
            for label in (*(node.by or ()), *(node.without or ())):
                if labels is not None and label not in labels:
                    yield _no_label(node.at, f"what {node.operation} reads", label, labels)
        elif isinstance(node, Binary):
            yield from _unmatched_labels(expression, node)


def _unmatched_labels(expression: Expression, node: Binary) -> Iterator[Finding]:
    for side, operand in (("left", node.left), ("right", node.right)):
        labels = expression.meanings[operand].labels
        for label in node.on or ():
            if labels is not None and label not in labels:
                yield _no_label(node.at, f"the {side} side of `{node.operator}`", label, labels)


def _no_label(at: int, what: str, label: str, labels: frozenset[str]) -> Finding:
    known = ", ".join(sorted(labels)) or "none"
    return Finding(at=at, message=f"{what} has no label {label}", fix=f"labels there: {known}")


def _conditions(expression: Expression) -> Iterator[tuple[Selector, Condition, tuple[str, ...]]]:
    """Yield the conditions on labels whose values are a closed set."""
    for node in _selectors(expression):
        known = expression.vocabulary.get(node.metric or "")
        for condition in node.conditions:
            closed = known.values.get(condition.label) if known else None
            if closed and _VARIABLE not in condition.value:
                yield node, condition, closed


def _unknown_value(expression: Expression) -> Iterator[Finding]:
    for _, condition, closed in _conditions(expression):
        if condition.label == "le":
            continue
        for value in _wanted(condition, closed):
            if value and value not in closed:
                message = f"{condition.label} is never {value!r}"
                yield Finding(at=condition.at, message=message, fix=f"values: {', '.join(closed)}")


def _wanted(condition: Condition, closed: tuple[str, ...]) -> list[str]:
    """Return the values that a condition names; of a pattern that is no list, itself unless it matches something."""
    if "~" not in condition.operator:
        return [condition.value]
    alternatives = _alternatives(condition.value)
    if alternatives is not None:
        return alternatives
    return [condition.value] if all(matches(condition.value, value) is False for value in closed) else []


def _alternatives(pattern: str) -> list[str] | None:
    """Return the values that a pattern lists (`a|b`), or None if it is another pattern."""
    listed = re.split(r"(?<!\\)\|", pattern)
    if all(_PLAIN.fullmatch(each) for each in listed):
        return [_BRACKETED.sub(lambda found: found[1] or found[2], each) for each in listed]
    return None


def _unknown_bound(expression: Expression) -> Iterator[Finding]:
    for node, condition, closed in _conditions(expression):
        if condition.label != "le":
            continue
        wanted = _wanted(condition, closed)
        for bound in wanted:
            if bound not in closed and f"{bound}.0" not in closed:
                yield Finding(
                    at=condition.at,
                    message=f"{node.metric} has no bucket {bound}",
                    fix=f"bounds: {', '.join(closed)}; a threshold in fleet.yml becomes one",
                )


def _integer_bound(expression: Expression) -> Iterator[Finding]:
    """Find bounds in the spelling that Prometheus 3 rewrites at ingestion, so that nothing has it any more."""
    for node in _selectors(expression):
        for condition in node.conditions:
            listed = [condition.value] if "~" not in condition.operator else _alternatives(condition.value) or []
            if condition.label != "le" or any("." in bound for bound in listed):
                continue
            for bound in listed:
                if bound.isdigit():
                    message = f'no series has le="{bound}" since Prometheus 3 stores le="{bound}.0"'
                    yield Finding(at=condition.at, message=message, fix=f'write le="{bound}.0"')


def _glob(expression: Expression) -> Iterator[Finding]:
    for node in _selectors(expression):
        for condition in node.conditions:
            if condition.operator in {"=", "!="} and "*" in condition.value:
                message = f"{condition.label}{condition.operator}{condition.value!r} means a literal star"
                yield Finding(at=condition.at, message=message, fix='for a pattern write =~ and ".*"')


def _anchored(expression: Expression) -> Iterator[Finding]:
    for node in _selectors(expression):
        for condition in node.conditions:
            if "~" in condition.operator and _LITERAL.fullmatch(condition.value):
                exact = condition.operator.replace("=~", "=").replace("!~", "!=")
                yield Finding(
                    at=condition.at,
                    message=f"patterns are anchored: {condition.value!r} matches nothing that only holds it",
                    fix=f'write {condition.label}{exact}"{condition.value}", or ".*" on both sides',
                )


def _rate_of_one_sample(expression: Expression) -> Iterator[Finding]:
    for function, node in _rated(expression):
        if node.span is not None and node.span < 2 * INTERVAL:
            message = f"{function}() needs two samples, and {node.span.total_seconds():g}s mostly hold one: no result"
            fix = f"scrapes are {duration_text(INTERVAL)} apart: look back {duration_text(_SHORTEST)} or more"
            yield Finding(at=node.at, message=message, fix=fix)


def _rated(expression: Expression) -> Iterator[tuple[str, Selector]]:
    """Yield what a function of differences reads."""
    for node, _ in expression.nodes():
        if isinstance(node, Call) and node.function in _OF_DIFFERENCES and isinstance(node.arguments[0], Selector):
            yield node.function, node.arguments[0]


def _no_samples(expression: Expression) -> Iterator[Finding]:
    """Find what Prometheus parses and no rule or panel can show: a range of samples at each moment, or a text."""
    root = expression.root
    is_range = isinstance(root, Subquery) or (isinstance(root, Selector) and root.span is not None)
    if expression.use is not Use.LOOK and (is_range or isinstance(root, Text)):
        message = f"{'a range of samples' if is_range else 'text'} is no result: every evaluation fails"
        yield Finding(at=root.at, message=message, fix="say what of it is meant: max_over_time(…[5m]), rate(…[5m])")


def _short_range(expression: Expression) -> Iterator[Finding]:
    without_result = {node for _, node in _rated(expression) if node.span is not None and node.span < 2 * INTERVAL}
    for node in _selectors(expression):
        if node.span is not None and node.span < _SHORTEST and node not in without_result:
            message = f"a range of {node.span.total_seconds():g}s holds too few samples as soon as one scrape fails"
            fix = f"scrapes are {duration_text(INTERVAL)} apart: look back {duration_text(_SHORTEST)} or more"
            yield Finding(at=node.at, message=message, fix=fix)


CHECKS = (
    Check(name="unknown-metric", find=_unknown_metric),
    Check(name="name-regex", find=_name_regex),
    Check(name="unknown-label", find=_unknown_label),
    Check(name="unknown-value", find=_unknown_value),
    Check(name="unknown-bound", find=_unknown_bound),
    Check(name="integer-bound", find=_integer_bound),
    Check(name="literal-star", find=_glob),
    Check(name="anchored-pattern", find=_anchored, severity=Severity.WARNING),
    Check(name="rate-of-one-sample", find=_rate_of_one_sample),
    Check(name="no-samples", find=_no_samples),
    Check(name="short-range", find=_short_range, severity=Severity.WARNING),
)
