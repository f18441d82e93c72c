"""Asked: which objective a query of good events is about.

In: a PromQL query of somebody else's. Out: objective, model and threshold as far as it tells, or None where it asks for
series that are not ours, or for less than an objective of ours is about: one replica, some models, what failed.
"""

from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal, InvalidOperation

from exporter.catalogue import MODEL, OUTCOME, REQUESTS_FINISHED, TPOT, TTFT
from prometheus.indicators import INDICATORS
from prometheus.lint.patterns import matches
from prometheus.lint.reading import ExpressionError, read
from prometheus.lint.tree import Binary, Condition, Node, Selector, selectors, walk
from prometheus.promql import LE

__all__ = ["asked"]

_FAILED = "error"
_SCRAPED = {TTFT.bucket: "ttft", TPOT.bucket: "itl", REQUESTS_FINISHED.name: "availability"}


def asked(query: str) -> tuple[str, str | None, timedelta | None] | None:
    """Tell what a query asks for: the objective, the model (None for all others), the threshold."""
    try:
        root = read(query)
    except ExpressionError:
        return None
    found = selectors(root)
    if _is_difference(root) or not all(map(_is_of_an_objective, found)):
        return None
    objectives = {_objective(selector.metric or "") for selector in found}
    models = set(_equal(found, MODEL.name))
    bounds = set(_equal(found, LE.name))
    if len(objectives) != 1 or None in objectives or len(models) > 1 or len(bounds) > 1:
        return None
    [slo] = objectives
    return slo or "", next(iter(models), None), _threshold(next(iter(bounds), None))


def _is_difference(root: Node) -> bool:
    """Tell what is left of something: `all - good` counts bad events."""
    return any(isinstance(node, Binary) and node.operator == "-" for node in walk(root))


def _is_of_an_objective(selector: Selector) -> bool:
    """Tell whether a selector takes every answered request, or a part of them, of one model or of all but some."""
    outcomes = [each for each in selector.conditions if each.label == OUTCOME.name]
    if selector.metric == REQUESTS_FINISHED.name and all(_holds(each, _FAILED) for each in outcomes):
        return False
    models = [each for each in selector.conditions if each.label == MODEL.name]
    known = {MODEL.name, OUTCOME.name, LE.name}
    return all(each.label in known for each in selector.conditions) and all(map(_is_told, models))


def _is_told(model: Condition) -> bool:
    return model.operator in {"!=", "!~"} or (model.operator == "=" and bool(model.value))


def _holds(condition: Condition, value: str) -> bool:
    """Tell whether a condition takes a value, or may."""
    is_met = matches(condition.value, value) if "~" in condition.operator else condition.value == value
    return is_met is None or is_met is (condition.operator in {"=", "=~"})


def _objective(name: str) -> str | None:
    recorded = (each.slo for each in INDICATORS if name.startswith(f"{MODEL.name}:llm_{each.slo}_good:"))
    return _SCRAPED.get(name) or next(recorded, None)


def _equal(found: Iterable[Selector], label: str) -> list[str]:
    conditions = (condition for selector in found for condition in selector.conditions)
    return [each.value for each in conditions if each.label == label and each.operator == "="]


def _threshold(bound: str | None) -> timedelta | None:
    try:
        milliseconds = Decimal(bound) * 1000 if bound else None
    except InvalidOperation:
        return None
    whole = milliseconds is not None and milliseconds.is_finite() and milliseconds == int(milliseconds) > 0
    return timedelta(milliseconds=int(milliseconds)) if whole and milliseconds else None
