"""Hardware: cards joined to the replicas and models that they serve.

In: the catalogue. Out: `Recorded` series by name, and the rules that record them. Which card serves whom is a series
of its own, `CLAIMS`; every exporter that reads the same fleet.yml shows it, so it is recorded once.
"""

from datetime import timedelta

from exporter.catalogue import (
    GENERATION_TOKENS,
    GPU,
    GPU_ENERGY,
    GPU_MEMORY_FREE,
    GPU_POWER,
    GPU_UTILIZATION,
    MODEL,
    PARTITION,
    REPLICA,
    REPLICA_GPU_INFO,
    Metric,
)
from prometheus.promql import Expr, Matcher
from prometheus.series import Recorded, RecordingRule, RuleGroup, last_known, select
from prometheus.windows import TILE

__all__ = [
    "CLAIMS",
    "GPU_MEMORY_LEFT",
    "GPU_POWER_OF_MODEL",
    "GPU_UTILIZATION_OF_MODEL",
    "GPU_UTILIZATION_OF_REPLICA",
    "ON_CARD",
    "TOKENS_PER_JOULE",
    "groups",
]

ON_CARD = (GPU, PARTITION)
_INTERVAL = timedelta(seconds=30)

CLAIMS = Recorded(
    name="replica_gpu:llm_gpu_claims:max",
    labels=(MODEL, REPLICA, *ON_CARD),
    help="Constant 1 for each card that a replica uses.",
)
GPU_UTILIZATION_OF_REPLICA = Recorded(
    name="replica:llm_gpu_utilization:avg",
    labels=(MODEL, REPLICA),
    help="Mean share of time in which the replica's cards computed, 0 to 1.",
)
GPU_UTILIZATION_OF_MODEL = Recorded(
    name="model:llm_gpu_utilization:avg",
    labels=(MODEL,),
    help="Mean share of time in which the model's cards computed, 0 to 1; to be read beside its queue.",
)
GPU_MEMORY_LEFT = Recorded(
    name="replica:llm_gpu_memory_free_bytes:min",
    labels=(MODEL, REPLICA),
    help="Memory left on the replica's fullest card, in bytes: what the KV cache cannot have any more.",
)
GPU_POWER_OF_MODEL = Recorded(
    name="model:llm_gpu_power_watts:avg5m",
    labels=(MODEL,),
    help="Power that the model's cards draw over 5m, in watts; a card that two models share counts for both.",
)
TOKENS_PER_JOULE = Recorded(
    name="model:llm_tokens_per_joule:ratio5m",
    labels=(MODEL,),
    help="Tokens generated per joule that the cards used, over 5m, by the replicas whose cards are known.",
)


def groups() -> tuple[RuleGroup, ...]:
    """Build the rules."""
    return (RuleGroup(name="hardware", interval=_INTERVAL, rules=_rules()),)


def _rules() -> tuple[RecordingRule, ...]:
    utilization = _per_claim(GPU_UTILIZATION)
    return (
        RecordingRule(recorded=CLAIMS, expr=_claims()),
        RecordingRule(recorded=GPU_UTILIZATION_OF_REPLICA, expr=utilization.aggregate("avg", MODEL, REPLICA)),
        RecordingRule(
            recorded=GPU_UTILIZATION_OF_MODEL,
            expr=utilization.aggregate("max", MODEL, *ON_CARD).aggregate("avg", MODEL),
        ),
        RecordingRule(recorded=GPU_MEMORY_LEFT, expr=_per_claim(GPU_MEMORY_FREE).aggregate("min", MODEL, REPLICA)),
        RecordingRule(recorded=GPU_POWER_OF_MODEL, expr=_power()),
        # Without power there is no ratio, rather than infinity.
        RecordingRule(recorded=TOKENS_PER_JOULE, expr=_tokens() / GPU_POWER_OF_MODEL.select().compare(">", 0)),
    )


def _claims() -> Expr:
    """Record each claim once. An exporter that has not learned the model of a replica leaves it to one that has.

    A scrape that is lost takes no claim away, or trouble with a card would be nobody's for a moment.
    """
    known, unknown = (
        last_known(REPLICA_GPU_INFO, matcher).aggregate("max", *CLAIMS.labels)
        for matcher in (Matcher.unequal(MODEL, ""), Matcher.equal(MODEL, ""))
    )
    return known.union(unknown.without(known, on=(REPLICA, *ON_CARD)))


def _per_claim(metric: Metric) -> Expr:
    return select(metric).aggregate("max", *ON_CARD).per(CLAIMS.select(), ON_CARD)


def _power() -> Expr:
    """Sum over the distinct cards of a model; the energy counter misses no peak, the gauge is for cards without one."""
    drawn = select(GPU_ENERGY).rate(TILE).union(select(GPU_POWER).over_time("avg", TILE.span))
    of_claims = drawn.aggregate("max", *ON_CARD).per(CLAIMS.select(), ON_CARD)
    return of_claims.aggregate("max", MODEL, *ON_CARD).aggregate("sum", MODEL)


def _tokens() -> Expr:
    """Count only replicas whose cards are known: the tokens of others have no joules here."""
    tokens = select(GENERATION_TOKENS).rate(TILE).aggregate("sum", MODEL, REPLICA)
    return tokens.intersect(CLAIMS.select(), on=(REPLICA,)).aggregate("sum", MODEL)
