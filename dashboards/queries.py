"""Queries that boards ask. In: series of the catalogue, recorded series; out: expressions and `Query`s."""

from dataclasses import dataclass
from decimal import Decimal

from dashboards.fields import AMBER, BLUE, CANNOT_TELL, GREEN, RED
from dashboards.panels import Query
from exporter.catalogue import ENGINE, MODEL, REPLICA, REPLICA_STATE, REPLICA_UP, SLO, STATE, Label, Metric
from prometheus.indicators import Indicator
from prometheus.promql import Expr, Matcher
from prometheus.recording import REPLICAS_READY
from prometheus.series import Recorded, select

__all__ = [
    "CHOSEN_MODEL",
    "CHOSEN_REPLICA",
    "STATES",
    "Chosen",
    "cannot_tell",
    "count_or_zero",
    "firing",
    "of_models",
    "of_slo",
    "promise",
    "seconds_since_scrape",
    "state_code",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen(Matcher):
    """Match what the viewer chose in the board's variable of the label's name; `All` matches everything."""

    @property
    def text(self) -> str:
        """The matcher as PromQL with Grafana's variable, whose values Grafana itself escapes."""
        return f'{self.label.name}=~"${self.label.name}"'


CHOSEN_MODEL = Chosen(label=MODEL, operator="=~", values=())
CHOSEN_REPLICA = Chosen(label=REPLICA, operator="=~", values=())

_COLOURS = {
    "ready": GREEN,
    "loading": BLUE,
    "sleeping": BLUE,
    "draining": "purple",
    "denied": AMBER,
    "disabled": AMBER,
}
STATES: dict[float, tuple[str, str]] = {
    float(code): (state, _COLOURS.get(state, RED)) for code, state in enumerate(STATE.values, start=1)
}
"""Value of `state_code` -> name and colour of the state."""


def of_models(recorded: Recorded, suffix: str = "") -> Query:
    """Ask for a series of each model chosen; the legend names the model."""
    return Query(expr=str(recorded.select(CHOSEN_MODEL)), legend=f"{{{{model}}}} {suffix}".strip())


def of_slo(recorded: Recorded, indicator: Indicator) -> Expr:
    """Return what is recorded about one objective of each model chosen."""
    return recorded.select(Matcher.equal(SLO, indicator.slo), CHOSEN_MODEL).aggregate("max", MODEL)


def promise(metric: Metric, slo: str) -> Expr:
    """Return what fleet.yml promises the users of each model: a threshold in seconds or a share, 0 to 1."""
    return select(metric, Matcher.equal(SLO, slo), CHOSEN_MODEL).aggregate("max", MODEL)


def cannot_tell(source: Recorded) -> Query:
    """Ask for the models that serve without giving `source`: a line without values, whose legend says so in words."""
    serving = REPLICAS_READY.select(CHOSEN_MODEL).compare(">", 0)
    silent = serving.without(source.select(CHOSEN_MODEL).aggregate("max", MODEL)) * Decimal("NaN")
    return Query(expr=str(silent), legend=f"{{{{model}}}}: {CANNOT_TELL}")


def firing(severity: str | None = None) -> Expr:
    """Return the alerts that fire now, as Prometheus itself records them."""
    matcher = f',severity="{severity}"' if severity else ',severity!~"heartbeat|note"'
    return Expr(parts=(f'ALERTS{{alertstate="firing"{matcher}}}',), labels=frozenset({MODEL.name, REPLICA.name}))


def count_or_zero(expr: Expr) -> Expr:
    """Count the samples; none is 0. Only without `by`: a fallback without labels joins nothing that has some."""
    return expr.aggregate("count").union(Expr(parts=("vector(0)",)))


def state_code() -> Expr:
    """Return the state of each replica as the number that `STATES` puts into words."""
    first, *others = (
        select(REPLICA_STATE, Matcher.equal(STATE, state), CHOSEN_MODEL, CHOSEN_REPLICA).compare("==", 1) * int(code)
        for code, (state, _) in STATES.items()
    )
    return first.union(*others).aggregate("max", REPLICA, MODEL, ENGINE)


def seconds_since_scrape(*by: Label) -> Expr:
    """Return the age of what is known in seconds: of everything, or of each group, of those chosen."""
    seen = select(REPLICA_UP, CHOSEN_MODEL, CHOSEN_REPLICA) if by else select(REPLICA_UP)
    return seen.call("timestamp").aggregate("max", *by).age()
