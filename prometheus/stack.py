"""Stack: the series of Prometheus and Alertmanager that alerts ask for. Data only.

They are the same in Prometheus 2.42 and 3.16, and in Alertmanager 0.25 and 0.35.
"""

from exporter.catalogue import Group, Kind, Label, Metric

__all__ = [
    "ALERTMANAGERS",
    "FAILED_NOTIFICATIONS",
    "INSTANCE",
    "INTEGRATION",
    "JOB",
    "LOST_NOTIFICATIONS",
    "MISSED_ITERATIONS",
    "RULE_FAILURES",
    "STORAGE_FAILURES",
    "UP",
]

JOB = Label(
    name="job",
    help="job of the scrape configuration",
    values=("replicas", "gpu", "exporter", "prometheus", "alertmanager"),
)
INSTANCE = Label(name="instance", help="host:port of a target")
INTEGRATION = Label(name="integration", help="kind of receiver: webhook, pagerduty, slack and so on")


def _metric(name: str, kind: Kind, text: str, *labels: Label) -> Metric:
    """Describe a series that others write; its group only has to be one without target labels of its own."""
    return Metric(name=name, kind=kind, group=Group.EXPORTER, help=text, labels=labels)


UP = _metric("up", Kind.GAUGE, "1 if the scrape of a target succeeded, else 0.", JOB, INSTANCE)
RULE_FAILURES = _metric("prometheus_rule_evaluation_failures_total", Kind.COUNTER, "Evaluations of rules that failed.")
MISSED_ITERATIONS = _metric(
    "prometheus_rule_group_iterations_missed_total",
    Kind.COUNTER,
    "Evaluations of rule groups left out because the one before still ran.",
)
ALERTMANAGERS = _metric(
    "prometheus_notifications_alertmanagers_discovered", Kind.GAUGE, "Alertmanagers that Prometheus sends alerts to."
)
LOST_NOTIFICATIONS = _metric(
    "prometheus_notifications_dropped_total", Kind.COUNTER, "Alerts that reached no Alertmanager."
)
FAILED_NOTIFICATIONS = _metric(
    "alertmanager_notifications_failed_total", Kind.COUNTER, "Notifications that reached nobody.", INTEGRATION
)
STORAGE_FAILURES = tuple(
    _metric(f"prometheus_tsdb_{what}_total", Kind.COUNTER, "Failures of the storage.")
    for what in (
        *("compactions_failed", "head_truncations_failed", "reloads_failures"),
        *("wal_corruptions", "wal_truncations_failed", "wal_writes_failed"),
    )
)
