"""Monitoring: who watches may be blind, dumb or lame. The exporter, Prometheus and Alertmanager themselves.

How soon LLMMonitoringBlind is on the phone, at worst: two of three scrapes fail within 20 s, the alert stays pending
for 20 s, the next evaluation comes within 10 s, Alertmanager waits 5 s: 55 s. One failed scrape in four is not two in
three. Where nothing fails because there is nothing left to scrape, it takes two minutes longer to be sure.
"""

from datetime import timedelta
from decimal import Decimal

from alerts.annotations import REPLICA_AND_ADDRESS, REPLICA_NAME
from alerts.model import Alert, AlertGroup, AlertRule, Severity
from exporter.catalogue import (
    FLEET_RELOAD_SUCCESS,
    FLEET_REPLICAS,
    MODEL,
    REPLICA,
    SCRAPE_DURATION,
    SPARE_REPLICAS,
    Metric,
)
from exporter.fleet import Fleet
from prometheus.promql import Expr, Matcher, Seconds
from prometheus.series import last_known, select
from prometheus.stack import (
    ALERTMANAGERS,
    FAILED_NOTIFICATIONS,
    INSTANCE,
    INTEGRATION,
    JOB,
    LOST_NOTIFICATIONS,
    MISSED_ITERATIONS,
    RULE_FAILURES,
    STORAGE_FAILURES,
    UP,
)
from prometheus.windows import INTERVAL, Window

__all__ = ["GROUP"]

_SEEN = timedelta(seconds=30)
"""Three scrapes."""
_MINUTE = timedelta(minutes=1)
_FEWEST_ANSWERS = 4
"""Of the scrapes of a minute; one in four may fail."""
_MOST = Decimal("0.5")
_LATELY = timedelta(minutes=15)
_HOUR = timedelta(hours=1)
_REPEATED = timedelta(minutes=2)
_MANY_MISSED = 5
_HALF_OF_THE_INTERVAL = INTERVAL / 2


def _blind(_: Fleet) -> Expr:
    """Answer the share of scrapes that fail: of the exporter, or of the replicas through it. Without either, all do.

    A replica that is down is no failed scrape: the exporter says so, and other alerts speak. A Prometheus that has just
    started has scraped nobody yet, not even itself.
    """
    exporter, replicas = (
        (1 - _up(job).over_time("avg", _SEEN).aggregate("avg")).compare(">", _MOST) for job in ("exporter", "replicas")
    )
    itself = _up("prometheus").over_time("max", _SEEN).aggregate("max")
    gone = _up("exporter").absent(_SEEN).intersect(itself.compare("==", 1))
    return exporter.union(replicas.without(_enough_answer()), gone, _nobody_left())


def _enough_answer() -> Expr:
    """Find that half of the replicas the exporter knows are scraped: those that have just left the fleet fail at last.

    An exporter that knows none still says how many may fail.
    """
    answering = _up("replicas").over_time("avg", _SEEN).aggregate("sum")
    known = select(FLEET_REPLICAS).aggregate("sum").union(select(SPARE_REPLICAS).aggregate("max") * 0)
    return answering.compare(">=", known * _MOST)


def _nobody_left() -> Expr:
    """Find that no replica is a target any more, though models were served that nobody drained.

    The exporter has answered for long enough that Prometheus, had it just started, would have asked it for targets.
    LLMFleetShrunk has looked back over a day, which costs too much to be done as often as this.
    """
    answers = _up("exporter").over_time("sum", _MINUTE).aggregate("max").compare(">=", _FEWEST_ANSWERS)
    missed = Expr(parts=(f'ALERTS{{alertname="LLMFleetShrunk",{MODEL.name}!=""}}',))
    return _up("replicas").absent(_MINUTE).intersect(answers, missed.aggregate("count"))


def _up(job: str) -> Expr:
    return select(UP, Matcher.equal(JOB, job))


def _count(span: timedelta, *metrics: Metric) -> Expr:
    """Count the events of all metrics within the span."""
    first, *others = (select(metric).rate(Window(span=span)).aggregate("sum") for metric in metrics)
    for other in others:
        first += other
    return first * Seconds(span=span)


def _rules_failing(_: Fleet) -> Expr:
    missed = _count(_LATELY, MISSED_ITERATIONS).compare(">", _MANY_MISSED)
    return _count(_LATELY, RULE_FAILURES).compare(">", 0).union(missed)


def _notifications_failing(_: Fleet) -> Expr:
    failed = select(FAILED_NOTIFICATIONS).rate(Window(span=_LATELY)).aggregate("sum", INTEGRATION)
    # Prometheus gives up at once what it cannot hand over, and says it again within a minute: a restart loses nothing.
    lost, still = (_count(span, LOST_NOTIFICATIONS).compare(">", 0) for span in (_LATELY, _REPEATED))
    return (failed * Seconds(span=_LATELY)).compare(">", 0).union(lost.intersect(still))


def _alertmanager_missing(_: Fleet) -> Expr:
    """Find Alertmanagers that do not answer; none at all is nobody to tell, which the heartbeat's end tells."""
    seen = _up("alertmanager").over_time("max", timedelta(minutes=2)).aggregate("max", INSTANCE)
    return seen.compare("==", 0).union(last_known(ALERTMANAGERS).aggregate("max").compare("<", 1))


def _scrape_slow(_: Fleet) -> Expr:
    took = select(SCRAPE_DURATION).over_time("avg", timedelta(minutes=10)).aggregate("max", REPLICA)
    return took.compare(">", Seconds(span=_HALF_OF_THE_INTERVAL))


GROUP = AlertGroup(
    name="monitoring",
    alerts=(
        Alert(
            name="LLMMonitoringBlind",
            meaning="The exporter is gone, or most replicas are not scraped through it: trouble would go unseen.",
            rules=(AlertRule(severity=Severity.PAGE, expression=_blind, delay=timedelta(seconds=20)),),
            summary="Servewatch is blind: replicas are not scraped",
            description=lambda _: (
                "{{ $value | humanizePercentage }} of the scrapes fail, of the exporter or through it, or are not tried"
                " since no replica is left in the fleet (limit 50%)."
                " Users may be served; nobody can tell, and no other page would come."
            ),
            board="fleet",
            drill="exporter-killed",
        ),
        Alert(
            name="LLMFleetReloadFailed",
            meaning="The exporter refused the last change of fleet.yml and goes on with the fleet before it.",
            rules=(
                AlertRule(
                    severity=Severity.TICKET,
                    expression=lambda _: last_known(FLEET_RELOAD_SUCCESS).aggregate("min").compare("==", 0),
                    delay=timedelta(minutes=2),
                ),
            ),
            summary="fleet.yml was refused: the fleet before it is watched",
            description=lambda _: "New replicas in fleet.yml are not watched, and new objectives do not count.",
            board="fleet",
        ),
        Alert(
            name="LLMScrapeSlow",
            meaning="A replica takes more than half of the scrape interval to answer with its metrics.",
            rules=(
                AlertRule(
                    severity=Severity.TICKET,
                    expression=_scrape_slow,
                    delay=timedelta(minutes=10),
                    every=timedelta(minutes=1),
                ),
            ),
            summary=f"Replica {REPLICA_NAME} answers scrapes slowly",
            description=lambda _: (
                f"Scrapes of {REPLICA_AND_ADDRESS} took {{{{ $value | humanizeDuration }}}} in the mean of 10m"
                " (limit 5s). When they take longer than the interval of 10s, it seems to be down."
            ),
            board="fleet",
        ),
        Alert(
            name="LLMRulesFailing",
            meaning="Prometheus cannot evaluate rules, or not in time: alerts may be missing.",
            rules=(AlertRule(severity=Severity.TICKET, expression=_rules_failing, delay=timedelta(minutes=5)),),
            summary="Prometheus fails to evaluate rules",
            description=lambda _: (
                'Within 15m {{ $value | printf "%.0f" }} evaluations failed (limit 0), or were left out because the one'
                f" before still ran (limit {_MANY_MISSED})."
            ),
            board="fleet",
        ),
        Alert(
            name="LLMNotificationsFailing",
            meaning="Notifications do not reach their receiver: a page may be lost.",
            rules=(
                AlertRule(
                    severity=Severity.TICKET,
                    expression=_notifications_failing,
                    delay=timedelta(minutes=5),
                    keep=timedelta(minutes=15),
                ),
            ),
            summary=(
                "Notifications get lost{{ if $labels.integration }} on the way to a receiver of the kind"
                " {{ $labels.integration }}{{ else }} between Prometheus and Alertmanager{{ end }}"
            ),
            description=lambda _: (
                'Within 15m {{ $value | printf "%.0f" }} were lost (limit 0). The kind of the receiver is known, not'
                " which one: where there are several of it, one of them."
            ),
            board="fleet",
        ),
        Alert(
            name="LLMAlertmanagerMissing",
            meaning="An Alertmanager does not answer, or Prometheus knows of none.",
            rules=(AlertRule(severity=Severity.TICKET, expression=_alertmanager_missing, delay=timedelta(minutes=2)),),
            summary="Alertmanager{{ with $labels.instance }} {{ . }}{{ end }} is missing",
            description=lambda _: "With the last Alertmanager every page is lost; only the missing heartbeat tells.",
            board="fleet",
        ),
        Alert(
            name="LLMPrometheusStorage",
            meaning="Prometheus cannot write, compact or read its data: history is at risk, and alerts with it.",
            rules=(
                AlertRule(
                    severity=Severity.TICKET,
                    expression=lambda _: _count(_HOUR, *STORAGE_FAILURES).compare(">", 0),
                    delay=timedelta(minutes=5),
                ),
            ),
            summary="Prometheus has trouble with its storage",
            description=lambda _: (
                'Within 1h {{ $value | printf "%.0f" }} operations on its data failed (limit 0). A full disk is the'
                " usual reason."
            ),
            board="fleet",
        ),
    ),
)
