"""Pool: the replicas of a model beside each other. One comes and goes, starts slowly or lags; the spare is gone."""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

from alerts.annotations import MODEL_NAME, OF_MODEL, REPLICA_AND_ADDRESS, REPLICA_NAME, THIS_MODEL, counts
from alerts.expected import known_models, not_off
from alerts.model import Alert, AlertGroup, AlertRule, Louder, Severity
from exporter.catalogue import (
    ENGINE,
    GENERATION_TOKENS,
    MODEL,
    REPLICA,
    REPLICA_INFO,
    REPLICA_STATE,
    STATE,
    VERSION,
)
from exporter.fleet import Fleet
from prometheus.partition import partition
from prometheus.promql import Expr, Matcher, Seconds
from prometheus.recording import REPLICA_ITL_MEAN, REPLICA_TTFT_MEAN, REPLICAS_BY_STATE, REPLICAS_READY
from prometheus.series import select
from prometheus.windows import INTERVAL

__all__ = ["GROUP"]

_OWN = (MODEL, REPLICA)
_HOUR = timedelta(hours=1)
_LATELY = timedelta(minutes=10)
_SEEN = timedelta(minutes=1)
_FEWEST_PEERS = 3
_MOSTLY = Decimal("0.5")
_DOWN = Louder(alertname="LLMModelDown")


def _union(parts: Iterator[Expr]) -> Expr:
    first, *others = parts
    return first.union(*others)


def _flapping(fleet: Fleet) -> Expr:
    """Count outages within an hour: times that a replica stopped being ready and came back, or that it restarted.

    A restart between two scrapes shows in its counters alone. A model that may be off comes and goes as it likes.
    """
    may_not = not_off(fleet)

    def outages() -> Iterator[Expr]:
        for part in partition(fleet.thresholds, lambda of: of.outages):
            ready = select(REPLICA_STATE, Matcher.equal(STATE, "ready"), *part.matchers, *may_not).changes(_HOUR)
            yield (ready.aggregate("sum", *_OWN) / 2).compare(">=", part.value)
            restarts = select(GENERATION_TOKENS, *part.matchers, *may_not).resets(_HOUR)
            yield restarts.aggregate("max", *_OWN).compare(">=", part.value)

    return _union(outages())


def _no_spare(fleet: Fleet) -> Expr:
    """Find models that serve with as many replicas missing as may fail. One that sleeps is not missing."""
    missing = REPLICAS_BY_STATE.select(Matcher.outside(STATE, ("ready", "sleeping")), *known_models(fleet))
    now = missing.aggregate("sum", MODEL)
    # A mean: one lost scrape would be a moment in which nothing is missing. Ten for a moment are not one for long.
    lost = now.call("clamp_max", fleet.spare_replicas).over_time("avg", _LATELY, step=INTERVAL)
    still = now.over_time("max", _SEEN, step=INTERVAL).compare(">=", fleet.spare_replicas)
    serves = REPLICAS_READY.select().over_time("max", _SEEN).compare(">", 0)
    return lost.compare(">", fleet.spare_replicas - _MOSTLY).intersect(still, serves, on=(MODEL,))


def _cold_start_slow(fleet: Fleet) -> Expr:
    """Add up the seconds spent in loading within half as much time again as it may take, of what still loads.

    A sum, so that a lost scrape hides nothing.
    """

    def slow() -> Iterator[Expr]:
        for part in partition(fleet.thresholds, lambda of: of.cold_start):
            loading = select(REPLICA_STATE, Matcher.equal(STATE, "loading"), *part.matchers)
            scrapes = loading.over_time("sum", part.value * 3 / 2).aggregate("sum", *_OWN)
            still = loading.over_time("max", _SEEN).aggregate("max", *_OWN).compare(">", 0)
            yield (scrapes * Seconds(span=INTERVAL)).compare(">=", Seconds(span=part.value)).intersect(still)

    return _union(slow())


def _outlier(fleet: Fleet) -> Expr:
    """Find replicas whose requests take many times as long as those of the median replica, in decode or prefill.

    Of two replicas nobody knows which one is odd.
    """

    def slower() -> Iterator[Expr]:
        for mean in (REPLICA_ITL_MEAN, REPLICA_TTFT_MEAN):
            for part in partition(fleet.thresholds, lambda of: of.outlier):
                own = mean.select(*part.matchers)
                peers = own.aggregate("count", MODEL).compare(">=", _FEWEST_PEERS)
                yield own.above(own.median(MODEL) * part.value, on=(MODEL,)).intersect(peers, on=(MODEL,))

    return _union(slower())


def _version_skew(_: Fleet) -> Expr:
    seen = select(REPLICA_INFO, Matcher.unequal(VERSION, "")).over_time("last", _LATELY)
    return seen.aggregate("count", MODEL, ENGINE, VERSION).aggregate("count", MODEL, ENGINE).compare(">", 1)


_STATES = counts(REPLICAS_BY_STATE.select(THIS_MODEL).compare(">", 0), STATE)
_VERSIONS = counts(
    select(REPLICA_INFO, Matcher.unequal(VERSION, ""), THIS_MODEL).aggregate("count", MODEL, VERSION), VERSION
)

GROUP = AlertGroup(
    name="pool",
    interval=timedelta(minutes=1),
    alerts=(
        Alert(
            name="LLMReplicaFlapping",
            meaning="A replica has gone away and come back, or restarted, several times within an hour.",
            rules=(AlertRule(severity=Severity.TICKET, expression=_flapping, every=timedelta(minutes=2)),),
            summary=f"{OF_MODEL}replica {REPLICA_NAME} comes and goes",
            description=lambda _: (
                f'{REPLICA_AND_ADDRESS} went away or restarted {{{{ $value | printf "%.0f" }}}} times within 1h.'
                " Each time the requests in it are lost."
            ),
            board="fleet",
            quiet_while=(_DOWN,),
        ),
        Alert(
            name="LLMNoSpareReplica",
            meaning="As many replicas of a model are missing as may fail: the next failure costs its users.",
            rules=(AlertRule(severity=Severity.TICKET, expression=_no_spare, delay=timedelta(minutes=5)),),
            summary=f"{MODEL_NAME}: no spare replica is left",
            description=lambda fleet: (
                f"Replicas of {MODEL_NAME} by state: {_STATES}."
                f" {fleet.spare_replicas} may fail without loss of capacity."
            ),
            board="fleet",
            quiet_while=(_DOWN,),
            needed=lambda fleet: fleet.spare_replicas > 0,
        ),
        Alert(
            name="LLMColdStartSlow",
            meaning="A replica has been loading its model for longer than it may take.",
            rules=(AlertRule(severity=Severity.TICKET, expression=_cold_start_slow),),
            summary=f"{OF_MODEL}replica {REPLICA_NAME} takes long to load",
            description=lambda _: (
                f"{REPLICA_AND_ADDRESS} has been loading for {{{{ $value | humanizeDuration }}}} and is not ready yet."
            ),
            board="fleet",
            quiet_while=(_DOWN,),
        ),
        Alert(
            name="LLMReplicaOutlier",
            meaning="A replica is many times slower than the median of its pool, with requests like theirs.",
            rules=(
                AlertRule(
                    severity=Severity.TICKET,
                    expression=_outlier,
                    delay=timedelta(minutes=10),
                    keep=timedelta(minutes=30),
                ),
            ),
            summary=f"{OF_MODEL}replica {REPLICA_NAME} is slower than its peers",
            description=lambda _: (
                f"Over 30m a request to {REPLICA_AND_ADDRESS} took {{{{ $value | humanizeDuration }}}} on average,"
                " between tokens or to the first one: many times as long as the median of its pool."
            ),
            board="fleet",
            quiet_while=(_DOWN, Louder(alertname="LLMReplicaStuck", labels=_OWN)),
        ),
        Alert(
            name="LLMVersionSkew",
            meaning="Replicas of a model have run different versions of an engine for hours: a rollout has stopped.",
            rules=(AlertRule(severity=Severity.TICKET, expression=_version_skew, delay=timedelta(hours=6)),),
            summary=f"{MODEL_NAME}: replicas run different versions",
            description=lambda _: f"For 6h {MODEL_NAME} has run on {{{{ $value }}}} versions. Now: {_VERSIONS}.",
            board="fleet",
        ),
    ),
)
