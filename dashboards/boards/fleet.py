"""The board for whoever was woken: are users served, by what, and where does it hurt.

In: recorded series, configuration as series, firing alerts. Out: the board `fleet`.
"""

from alerts.model import Severity
from alerts.objectives import BUDGET_LEFT, burn
from dashboards.board import Board, Variable
from dashboards.fields import AMBER, CANNOT_TELL, EITHER, GREEN, NO_TRAFFIC, RED, Column, Look, dashed
from dashboards.layout import Row
from dashboards.panels import Panel, Query, Stat, StateTimeline, Table, Timeseries
from dashboards.queries import (
    CHOSEN_MODEL,
    CHOSEN_REPLICA,
    STATES,
    cannot_tell,
    count_or_zero,
    firing,
    of_models,
    of_slo,
    promise,
    seconds_since_scrape,
    state_code,
)
from exporter.catalogue import (
    ENGINE,
    FLEET_REPLICAS,
    KV_CACHE_USAGE,
    MODEL,
    OUTCOME,
    REPLICA,
    REPLICA_UP,
    REQUESTS_RUNNING,
    REQUESTS_WAITING,
    SLO,
    SLO_OBJECTIVE,
    SLO_THRESHOLD,
    SPARE_REPLICAS,
    Metric,
)
from exporter.fleet import Fleet
from prometheus import recording
from prometheus.deployment import Deployment
from prometheus.indicators import AVAILABILITY, GOODPUT, INDICATORS, ITL_INDICATOR, TTFT_INDICATOR
from prometheus.promql import Expr, Matcher
from prometheus.series import select
from prometheus.windows import TILE, duration_text

__all__ = ["board"]

_TOO_OLD = 30  # seconds: three scrapes
_PAGE = Severity.PAGE.value

_COUNT = Look(unit="none", empty=CANNOT_TELL, decimals=0)
_GOODPUT = Look(unit="percentunit", empty=EITHER, decimals=1)
_BUDGET = Look(unit="percentunit", empty=EITHER, decimals=0, base=RED, colours=[(0.001, AMBER), (0.25, GREEN)])
_BURN = Look(unit="suffix:x", empty=NO_TRAFFIC, decimals=1, base=GREEN, colours=[(1, AMBER), (6, RED)])
_TROUBLES = Look(unit="none", empty="no data yet", base=GREEN, colours=[(1, RED)], words={0: ("none", GREEN)})
_KV_CACHE = Look(unit="percentunit", empty=CANNOT_TELL)
_AGE = Look(unit="s", empty="never seen", decimals=0, base=GREEN, colours=[(_TOO_OLD, RED)])
_SECONDS = Look(unit="s", empty=EITHER)
_TEXT = Look(unit="string", empty="not known")


def board(fleet: Fleet, deployment: Deployment) -> Board:
    """Build the board."""
    return Board(
        uid="fleet",
        title="Fleet",
        description="Are users served, by what, and where does it hurt. Start here when an alert woke you.",
        rows=[
            Row(title="Are users served?", panels=[*_headline(), _models(fleet), _alerts(deployment)]),
            Row(title="What users feel", panels=[*_latencies(), _goodput()]),
            Row(title="Traffic", panels=_traffic()),
            Row(title="Pressure", panels=_pressure()),
            Row(title="Replicas", panels=[_states(), _timeline(), _replicas()]),
        ],
        variables=[
            Variable(name=MODEL.name, title="Model", selector=str(select(FLEET_REPLICAS)), label=MODEL.name),
            Variable(
                name=REPLICA.name, title="Replica", selector=str(select(REPLICA_UP, CHOSEN_MODEL)), label=REPLICA.name
            ),
        ],
        events=str(firing(_PAGE)),
    )


def _headline() -> list[Panel]:
    """Say what holds for the whole fleet, whatever is chosen above, in numbers that one reads from across the room."""
    unserved = recording.REPLICAS_READY.select().compare("==", 0)
    return [
        Stat(
            title="Models without a ready replica",
            description="Their users get errors now, unless the model sleeps on purpose.",
            look=_TROUBLES,
            queries=[Query(expr=str(count_or_zero(unserved)))],
        ),
        Stat(
            title="Pages firing",
            description="Alerts that page somebody and fire now. The table below names them.",
            look=_TROUBLES,
            queries=[Query(expr=str(count_or_zero(firing(_PAGE))))],
        ),
        Stat(
            title="Replicas ready",
            description="Replicas that can take requests, of those that fleet.yml names.",
            look=Look(unit="none", empty="no data yet", decimals=0),
            queries=[
                Query(expr=str(recording.REPLICAS_READY.select().aggregate("sum")), legend="ready"),
                Query(expr=str(select(FLEET_REPLICAS).aggregate("sum")), legend="in fleet.yml"),
            ],
        ),
        Stat(
            title="Least error budget left",
            description="What is left of the error budget that is nearest to its end, over all models and objectives.",
            look=_BUDGET,
            queries=[Query(expr=str(BUDGET_LEFT.select().aggregate("min")))],
        ),
        Stat(
            title="Fastest burn",
            description=f"Over {TILE.name}: how many times faster than it lasts an error budget is spent, at most.",
            look=_BURN,
            queries=[Query(expr=str(burn(TILE).select().aggregate("max")))],
        ),
        Stat(
            title="Last look at a replica",
            description="Age of the newest scrape. When it grows, this board shows the past and alerts are blind.",
            look=_AGE,
            queries=[Query(expr=str(seconds_since_scrape()))],
        ),
    ]


def _models(fleet: Fleet) -> Panel:
    asked = AVAILABILITY.total(TILE).select(CHOSEN_MODEL).compare(">", 0)
    ready = Look(unit="none", empty="none", decimals=0, base=RED, colours=[(1, GREEN)])
    spare = Look(unit="none", empty="not known", decimals=0, base=RED, colours=[(0, AMBER), (1, GREEN)])
    answers: list[tuple[Expr, str, Look]] = [
        (recording.REPLICAS.select(CHOSEN_MODEL), "Replicas", _COUNT),
        (recording.REPLICAS_READY.select(CHOSEN_MODEL), "Ready", ready),
        (_spare(), "May still fail", spare),
        (GOODPUT.good(TILE).select(CHOSEN_MODEL) / asked, "Goodput, at least", _GOODPUT),
        (recording.GOODPUT_UPPER.select(CHOSEN_MODEL) / asked, "Goodput, at most", _GOODPUT),
        (promise(SLO_OBJECTIVE, "goodput"), "Goodput, promised", _GOODPUT),
        *((of_slo(BUDGET_LEFT, each), f"Budget left: {each.title.lower()}", _BUDGET) for each in INDICATORS),
        (burn(TILE).select(CHOSEN_MODEL).aggregate("max", MODEL), "Fastest burn", _BURN),
    ]
    return Table(
        title="Models",
        description=(
            f"One line per model. Budgets are those of {duration_text(fleet.slos.window)}. Goodput is the share of"
            f" requests within {TILE.name} that met every objective, of which histograms only give bounds."
            " A click on a model shows it alone."
        ),
        empty="no model is known yet",
        queries=[Query(expr=str(expr)) for expr, _, _ in answers],
        columns=[
            Column(source=MODEL.name, title="Model", look=_TEXT, url=_only(MODEL.name), hint="Show it alone"),
            *(
                Column(source=f"Value #{ref}", title=title, look=look)
                for ref, (_, title, look) in zip("ABCDEFGHIJK", answers, strict=True)
            ),
        ],
        join_by=MODEL.name,
        sort_by="Model",
        height=6,
    )


def _spare() -> Expr:
    """Count the replicas that may fail before capacity is lost: those ready beyond those needed (all but the spare)."""
    ready, total = recording.REPLICAS_READY.select(CHOSEN_MODEL), recording.REPLICAS.select(CHOSEN_MODEL)
    granted = select(SPARE_REPLICAS).aggregate("max")
    return (ready - total) + Expr(parts=("scalar(", *granted.parts, ")"))


def _only(label: str) -> str:
    return f"/d/fleet?var-{label}=${{__data.fields.{label}:percentencode}}&${{__url_time_range}}"


def _alerts(deployment: Deployment) -> Panel:
    severity = Look(unit="string", empty="not known")
    runbook = f"{deployment.addresses.runbooks}/${{__data.fields.alertname:percentencode}}"
    return Table(
        title="Firing alerts",
        description="What fires now, most urgent first. A click on the name opens its runbook.",
        empty="no alert is firing",
        queries=[Query(expr=str(firing()))],
        columns=[
            Column(source="severity", title="Severity", look=severity, width=110),
            Column(source="alertname", title="Alert", look=_TEXT, url=runbook, hint="Runbook"),
            Column(source=MODEL.name, title="Model", look=_TEXT),
            Column(source=REPLICA.name, title="Replica", look=_TEXT),
            Column(source=SLO.name, title="Objective", look=_TEXT),
        ],
        sort_by="Severity",
        height=6,
    )


def _latencies() -> list[Panel]:
    return [
        Timeseries(
            title="Time to first token",
            description="Median and 95th percentile over 5m; the dashed line is the promise of fleet.yml.",
            look=_SECONDS,
            queries=[
                of_models(recording.TTFT_P50, "p50"),
                of_models(recording.TTFT_P95, "p95"),
                _threshold(SLO_THRESHOLD, "ttft"),
                cannot_tell(TTFT_INDICATOR.total(TILE)),
            ],
            overrides=[dashed("C", RED)],
        ),
        Timeseries(
            title="Inter-token latency",
            description="A request's mean gap between tokens, over 5m; the dashed line is the promise of fleet.yml.",
            look=_SECONDS,
            queries=[
                of_models(recording.ITL_P50, "p50"),
                of_models(recording.ITL_P95, "p95"),
                _threshold(SLO_THRESHOLD, "itl"),
                cannot_tell(ITL_INDICATOR.total(TILE)),
            ],
            overrides=[dashed("C", RED)],
        ),
    ]


def _threshold(metric: Metric, slo: str) -> Query:
    return Query(expr=str(promise(metric, slo)), legend="{{model}} promised")


def _goodput() -> Panel:
    asked = AVAILABILITY.total(TILE).select(CHOSEN_MODEL).compare(">", 0)
    lower, upper = (of.select(CHOSEN_MODEL) / asked for of in (GOODPUT.good(TILE), recording.GOODPUT_UPPER))
    return Timeseries(
        title="Goodput",
        description="Share of requests that met every objective, over 5m: the truth lies between the two lines.",
        look=Look(unit="percentunit", empty=EITHER),
        queries=[
            Query(expr=str(lower), legend="{{model}} at least"),
            Query(expr=str(upper), legend="{{model}} at most"),
            _threshold(SLO_OBJECTIVE, "goodput"),
            cannot_tell(GOODPUT.good(TILE)),
        ],
        maximum=1,
        overrides=[dashed("C", RED)],
    )


def _traffic() -> list[Panel]:
    failed = recording.FINISHED_RATE.select(Matcher.equal(OUTCOME, "error"), CHOSEN_MODEL)
    aborted = recording.FINISHED_RATE.select(Matcher.equal(OUTCOME, "abort"), CHOSEN_MODEL)
    return [
        Timeseries(
            title="Requests",
            description="Requests that ended or were turned away, per second, over 1m.",
            look=Look(unit="reqps", empty=CANNOT_TELL),
            queries=[of_models(recording.REQUEST_RATE), cannot_tell(recording.REQUEST_RATE)],
        ),
        Timeseries(
            title="Tokens",
            description="Tokens read (prompts, cached ones included) and generated, per second, over 1m.",
            look=Look(unit="suffix: tok/s", empty=CANNOT_TELL),
            queries=[
                of_models(recording.GENERATION_TOKEN_RATE, "generated"),
                of_models(recording.PROMPT_TOKEN_RATE, "read"),
            ],
        ),
        Timeseries(
            title="Errors and rejections",
            description="Requests that failed or were turned away count against availability; aborts are the client's.",
            look=Look(unit="reqps", empty=CANNOT_TELL),
            queries=[
                Query(expr=str(failed), legend="{{model}} failed"),
                of_models(recording.REJECTED_RATE, "turned away"),
                Query(expr=str(aborted), legend="{{model}} aborted"),
                cannot_tell(recording.REQUEST_RATE),
            ],
        ),
    ]


def _pressure() -> list[Panel]:
    return [
        Timeseries(
            title="Requests running and waiting",
            description="Requests in prefill or decode, and in the queue. A growing queue is time to first token.",
            look=Look(unit="none", empty=CANNOT_TELL, decimals=0),
            queries=[of_models(recording.RUNNING, "running"), of_models(recording.WAITING, "waiting")],
        ),
        Timeseries(
            title="KV cache in use",
            description="On the fullest replica and on average. Full is normal; with a queue or preemptions it is not.",
            look=_KV_CACHE,
            queries=[
                of_models(recording.KV_CACHE_MAX, "fullest"),
                of_models(recording.KV_CACHE_MEAN, "mean"),
                cannot_tell(recording.KV_CACHE_MAX),
            ],
            maximum=1,
        ),
        Timeseries(
            title="Preemptions",
            description="Requests per second that lost their KV cache and start again, over 1m. Users see a pause.",
            look=Look(unit="suffix: /s", empty=CANNOT_TELL),
            queries=[of_models(recording.PREEMPTION_RATE), cannot_tell(recording.PREEMPTION_RATE)],
        ),
    ]


def _states() -> Panel:
    counts = recording.REPLICAS_BY_STATE.select(CHOSEN_MODEL).aggregate("sum", *recording.REPLICAS_BY_STATE.labels[1:])
    return Timeseries(
        title="Replicas by state",
        description="How many replicas of the models chosen are in each state.",
        look=Look(unit="none", empty="no replica is known yet", decimals=0),
        queries=[Query(expr=str(counts.compare(">", 0)), legend="{{state}}")],
        stacked=True,
    )


def _timeline() -> Panel:
    return StateTimeline(
        title="State of each replica",
        description="Ready is green. Nothing is drawn where nothing was scraped.",
        empty="no replica is known yet",
        states=STATES,
        queries=[Query(expr=str(state_code()), legend="{{replica}}")],
        width=16,
    )


def _replicas() -> Panel:
    here = (CHOSEN_MODEL, CHOSEN_REPLICA)
    state = Look(unit="none", empty="not known", words=STATES)
    age = seconds_since_scrape(REPLICA)
    return Table(
        title="Every replica",
        description="One line per replica, as last scraped. A click on a replica shows it alone.",
        empty="no replica is known yet",
        queries=[
            Query(expr=str(state_code())),
            Query(expr=str(select(REQUESTS_RUNNING, *here).aggregate("sum", REPLICA))),
            Query(expr=str(select(REQUESTS_WAITING, *here).aggregate("sum", REPLICA))),
            Query(expr=str(select(KV_CACHE_USAGE, *here).aggregate("max", REPLICA))),
            Query(expr=str(age)),
        ],
        columns=[
            Column(source=REPLICA.name, title="Replica", look=_TEXT, url=_only(REPLICA.name), hint="Show it alone"),
            Column(source=MODEL.name, title="Model", look=_TEXT),
            Column(source=ENGINE.name, title="Engine", look=_TEXT),
            Column(source="Value #A", title="State", look=state),
            Column(source="Value #B", title="Running", look=_COUNT),
            Column(source="Value #C", title="Waiting", look=_COUNT),
            Column(source="Value #D", title="KV cache in use", look=_KV_CACHE),
            Column(source="Value #E", title="Last scrape, ago", look=_AGE),
        ],
        join_by=REPLICA.name,
        sort_by="State",
        descending=True,
        height=10,
    )
