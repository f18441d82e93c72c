"""Capacity: what will be full in a week. Looks at busy hours, day by day, so that nights do not hide them."""

from datetime import timedelta

from alerts.annotations import MODEL_NAME
from alerts.model import Alert, AlertGroup, AlertRule, Severity
from exporter.fleet import Fleet
from prometheus.partition import partition
from prometheus.promql import Expr
from prometheus.recording import KV_CACHE_BUSY

__all__ = ["GROUP"]

_WEEK = timedelta(days=7)
_HOUR = timedelta(hours=1)
_ENOUGH_HOURS = 72
"""Hours of history below which a line through them says nothing."""


def _full_in_a_week(fleet: Fleet) -> Expr:
    """Extend the line through the busy hours of the last week by a week, where it rises and there is history enough."""
    known = KV_CACHE_BUSY.select().over_time("count", _WEEK, step=_HOUR).compare(">=", _ENOUGH_HOURS)
    first, *others = (
        KV_CACHE_BUSY.select(*part.matchers).forecast(_WEEK, _WEEK).compare(">", part.value)
        for part in partition(fleet.thresholds, lambda of: of.forecast)
    )
    full = first.union(*others)
    rises = (KV_CACHE_BUSY.select().forecast(_WEEK, _WEEK) - KV_CACHE_BUSY.select()).compare(">", 0)
    return full.intersect(known, rises)


GROUP = AlertGroup(
    name="capacity",
    interval=timedelta(minutes=2),
    alerts=(
        Alert(
            name="LLMCapacityForecast",
            meaning="If load grows on as in the last week, the KV cache of a model is full in busy hours in a week.",
            rules=(
                AlertRule(
                    severity=Severity.TICKET,
                    expression=_full_in_a_week,
                    delay=timedelta(hours=6),
                    keep=timedelta(hours=12),
                ),
            ),
            summary=f"{MODEL_NAME}: capacity will run out within a week",
            description=lambda _: (
                f"At this pace {{{{ $value | humanizePercentage }}}} of the KV cache of {MODEL_NAME} are in use in busy"
                " hours a week from now. Another replica takes time to come."
            ),
            board="fleet",
        ),
    ),
)
