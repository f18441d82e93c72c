"""Model: what an alert is.

In: expressions. Out: `Alert`, the one entry from which its rules, routes, runbook facts and tests are made.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from exporter.catalogue import MODEL, Label
from exporter.fleet import Fleet
from prometheus.indicators import Indicator
from prometheus.promql import Expr
from prometheus.windows import INTERVAL

__all__ = ["Alert", "AlertGroup", "AlertRule", "Louder", "Severity"]


class Severity(Enum):
    """Who hears of it: a person at once, a person in working hours, the machine that misses a heartbeat, or nobody."""

    PAGE = "page"
    TICKET = "ticket"
    HEARTBEAT = "heartbeat"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRule:
    """When an alert fires with one severity: as long as the expression has samples, after `delay` of them.

    It stays for `keep` after the last sample, so that trouble that comes and goes is one alert. `every` is how often it
    is evaluated, unless as its group; `description` what it says, unless as its alert.
    """

    severity: Severity
    expression: Callable[[Fleet], Expr]
    delay: timedelta = timedelta()
    keep: timedelta = timedelta()
    every: timedelta | None = None
    description: Callable[[Fleet], str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Louder:
    """Another alert that says it all: while it pages about the same `labels`, or notes, this one tells nobody.

    A label that is missing on both sides would agree, so both alerts have to carry each of them; no labels means that
    the other alert is about everything.
    """

    alertname: str
    labels: tuple[Label, ...] = (MODEL,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert. Its name is also that of its runbook.

    `meaning` is one sentence for lists and runbooks. `summary` and `description` are Prometheus templates for a person;
    values stand there and never in labels, where each new value would be another alert. `board` is the uid of the
    board to look at first; `drill` names the drill that proves the alert. `quiet_while` are alerts that make it
    superfluous. It is only there for fleets that need it.
    """

    name: str
    meaning: str
    rules: tuple[AlertRule, ...]
    summary: str
    description: Callable[[Fleet], str]
    board: str
    indicator: Indicator | None = None
    drill: str | None = None
    quiet_while: tuple[Louder, ...] = ()
    needed: Callable[[Fleet], bool] = lambda _: True

    def __post_init__(self) -> None:
        """Refuse two rules of one severity: their alerts would have the same labels and overwrite each other."""
        severities = self.severities
        if len(set(severities)) < len(severities) or not severities:
            raise ValueError(f"{self.name}: expected one rule per severity, got {[each.value for each in severities]}")

    @property
    def severities(self) -> tuple[Severity, ...]:
        """The severities it can have, most urgent first."""
        return tuple(rule.severity for rule in self.rules)

    @property
    def slo(self) -> str | None:
        """The objective it is about."""
        return self.indicator.slo if self.indicator else None

    @property
    def runbook(self) -> str:
        """Path of its runbook from the root of the project."""
        return f"runbooks/{self.name}.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertGroup:
    """Alerts about one thing, evaluated together every `interval` unless they say otherwise."""

    name: str
    alerts: tuple[Alert, ...]
    interval: timedelta = INTERVAL

    def by_interval(self, fleet: Fleet) -> dict[timedelta, tuple[tuple[Alert, AlertRule], ...]]:
        """Return the rules a fleet needs by how often they are evaluated: those that are as the group come first."""
        rules = [(alert, rule) for alert in self.alerts if alert.needed(fleet) for rule in alert.rules]
        intervals = dict.fromkeys((self.interval, *(rule.every for _, rule in rules if rule.every)))
        return {
            interval: tuple((alert, rule) for alert, rule in rules if (rule.every or self.interval) == interval)
            for interval in intervals
        }
