"""Asked: which objective a query of good events is about.

In: a PromQL query of somebody else's. Out: objective, model and threshold as far as it tells, or None where it asks for
series that are not ours.
"""

from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal, InvalidOperation

from exporter.catalogue import MODEL, REQUESTS_FINISHED, TPOT, TTFT
from prometheus.indicators import INDICATORS
from prometheus.lint.reading import ExpressionError, read
from prometheus.lint.tree import Selector, selectors
from prometheus.promql import LE

__all__ = ["asked"]

_SCRAPED = {TTFT.bucket: "ttft", TPOT.bucket: "itl", REQUESTS_FINISHED.name: "availability"}


def asked(query: str) -> tuple[str, str | None, timedelta | None] | None:
    """Tell what a query asks for: the objective, the model (None for all others), the threshold."""
    try:
        found = selectors(read(query))
    except ExpressionError:
        return None
    objectives = {_objective(selector.metric or "") for selector in found}
    models = set(_equal(found, MODEL.name))
    bounds = set(_equal(found, LE.name))
    if len(objectives) != 1 or None in objectives or len(models) > 1 or len(bounds) > 1:
        return None
    [slo] = objectives
    return slo or "", next(iter(models), None), _threshold(next(iter(bounds), None))


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
