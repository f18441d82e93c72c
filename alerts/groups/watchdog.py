"""Watchdog: an alert that always fires, so that its silence can page."""

from alerts.model import Alert, AlertGroup, AlertRule, Severity
from prometheus.promql import Expr

__all__ = ["GROUP"]

GROUP = AlertGroup(
    name="watchdog",
    alerts=(
        Alert(
            name="Watchdog",
            meaning="Always fires; whoever expects it pages when it stops, because then nobody else would.",
            rules=(AlertRule(severity=Severity.HEARTBEAT, expression=lambda _: Expr(parts=("vector(1)",))),),
            summary="Prometheus and Alertmanager are alive",
            description=lambda _: "This alert always fires. When it stops, pages cannot arrive.",
            board="fleet",
        ),
    ),
)
