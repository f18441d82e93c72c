"""Recording: what boards show about load, throughput, latency and goodput, per model.

In: the catalogue. Out: `Recorded` series by name, and the rules that record them. Boards query these, so that a board
costs the same with three replicas and with a thousand.
"""

from datetime import timedelta
from decimal import Decimal

from exporter.catalogue import (
    GENERATION_TOKENS,
    KV_CACHE_USAGE,
    MODEL,
    OUTCOME,
    PREEMPTIONS,
    PREFIX_CACHE_HITS,
    PREFIX_CACHE_QUERIES,
    PROMPT_TOKENS,
    RANK,
    REPLICA,
    REPLICA_STATE,
    REQUESTS_FINISHED,
    REQUESTS_REJECTED,
    REQUESTS_RUNNING,
    REQUESTS_WAITING,
    STATE,
    TPOT,
    TTFT,
    Metric,
)
from prometheus.indicators import AVAILABILITY, ITL_INDICATOR, TTFT_INDICATOR, Indicator
from prometheus.promql import LE, Expr, Matcher, Seconds
from prometheus.series import Recorded, RecordingRule, RuleGroup, buckets, events, select, sums
from prometheus.windows import INTERVAL, RECENT, SHORT, TILE

__all__ = [
    "ABORTED_RATE",
    "FINISHED_RATE",
    "GENERATION_TOKEN_RATE",
    "GOODPUT_UPPER",
    "ITL_BUCKETS",
    "ITL_P50",
    "ITL_P95",
    "KV_CACHE_BUSY",
    "KV_CACHE_MAX",
    "KV_CACHE_MEAN",
    "PREEMPTION_RATE",
    "PREFIX_CACHE_HIT_RATE",
    "PREFIX_CACHE_HIT_RATIO",
    "PREFIX_CACHE_QUERY_RATE",
    "PROMPT_TOKEN_RATE",
    "READY_CHANGES",
    "REJECTED_RATE",
    "REPLICAS",
    "REPLICAS_ASLEEP",
    "REPLICAS_BY_STATE",
    "REPLICAS_IN_ORDER",
    "REPLICAS_READY",
    "REPLICA_ITL_MEAN",
    "REPLICA_TTFT_MEAN",
    "REQUEST_RATE",
    "RUNNING",
    "TTFT_BUCKETS",
    "TTFT_P50",
    "TTFT_P95",
    "VANISHED_RATE",
    "WAITING",
    "groups",
]

_PER_MODEL = (MODEL,)
_HALF_HOUR = SHORT[1]
_FEWEST_REQUESTS = 20
_MEDIAN = Decimal("0.5")
_TAIL = Decimal("0.95")
_SLOWLY = timedelta(minutes=2)
"""For what is about days; half of Prometheus' lookback, or the series would blink."""

_MINUTELY = timedelta(minutes=1)
_LOAD_INTERVAL = timedelta(seconds=20)
_WORK_INTERVAL = timedelta(seconds=30)
_SEEN = INTERVAL * 3
"""Three scrapes."""


def _model(name: str, text: str) -> Recorded:
    return Recorded(name=f"model:{name}", labels=_PER_MODEL, help=text)


REPLICAS_BY_STATE = Recorded(
    name="model_state:llm_replicas:count", labels=(MODEL, STATE), help="Replicas of a model in each state."
)
REPLICAS_READY = _model("llm_replicas_ready:count", "Replicas of a model that are ready.")
REPLICAS = _model("llm_replicas:count", "Replicas of a model, whatever their state.")
REPLICAS_ASLEEP = _model("llm_replicas_asleep:count", "Replicas of a model that sleep on purpose.")
REPLICAS_IN_ORDER = _model("llm_replicas_in_order:count", "Replicas of a model that are ready, or sleep on purpose.")
READY_CHANGES = _model(
    "llm_replicas_ready:changes5m",
    "Times that a replica of a model began or ceased to be ready, over 5m, of the least steady.",
)
RUNNING = _model("llm_requests_running:sum", "Requests being prefilled or decoded now.")
WAITING = _model("llm_requests_waiting:sum", "Requests in the engines' queues now.")
KV_CACHE_MEAN = _model("llm_kv_cache_usage_ratio:avg", "Mean share of the KV cache held by running requests, 0 to 1.")
KV_CACHE_BUSY = _model(
    "llm_kv_cache_usage_ratio:p95_1d",
    "Mean share of the KV cache in use that was not exceeded for 95 % of the last day, 0 to 1: that of busy hours.",
)
KV_CACHE_MAX = _model("llm_kv_cache_usage_ratio:max", "Share of the KV cache in use on the fullest replica, 0 to 1.")
PREEMPTION_RATE = _model("llm_preemptions:rate1m", "Preemptions per second, over 1m.")
PROMPT_TOKEN_RATE = _model("llm_prompt_tokens:rate1m", "Prompt tokens read per second, cached ones included, over 1m.")
GENERATION_TOKEN_RATE = _model("llm_generation_tokens:rate1m", "Tokens generated per second, over 1m.")
PREFIX_CACHE_HIT_RATE = _model(
    "llm_prefix_cache_hit_tokens:rate5m", "Prompt tokens found in the prefix cache per second, over 5m."
)
PREFIX_CACHE_QUERY_RATE = _model(
    "llm_prefix_cache_query_tokens:rate5m", "Prompt tokens looked up in the prefix cache per second, over 5m."
)
PREFIX_CACHE_HIT_RATIO = _model(
    "llm_prefix_cache_hits:ratio5m", "Share of looked-up prompt tokens found in the prefix cache over 5m, 0 to 1."
)
FINISHED_RATE = Recorded(
    name="model_outcome:llm_requests_finished:rate1m",
    labels=(MODEL, OUTCOME),
    help="Requests that ended per second, by outcome, over 1m.",
)
REJECTED_RATE = _model("llm_requests_rejected:rate1m", "Requests turned away per second, over 1m.")
REQUEST_RATE = _model("llm_requests:rate1m", "Requests finished (aborts included) or turned away per second, over 1m.")
VANISHED_RATE = _model(
    "llm_requests_vanished:rate30m", "Requests per second with a first token and no end that anybody counts, over 30m."
)
ABORTED_RATE = _model(
    "llm_requests_aborted:rate30m",
    "Requests per second whose client went away, over 30m: those booked so, and those with a first token and no end.",
)
REPLICA_TTFT_MEAN = Recorded(
    name="replica:llm_ttft_seconds:mean30m",
    labels=(MODEL, REPLICA),
    help=f"Mean time to first token in seconds, over 30m, where at least {_FEWEST_REQUESTS} requests tell.",
)
REPLICA_ITL_MEAN = Recorded(
    name="replica:llm_itl_seconds:mean30m",
    labels=(MODEL, REPLICA),
    help=f"Mean of requests' inter-token latency in seconds, over 30m, of at least {_FEWEST_REQUESTS} requests.",
)
TTFT_BUCKETS = Recorded(
    name="model_le:llm_ttft_bucket:rate5m",
    labels=(MODEL, LE),
    help="First tokens per second within each bound, over 5m.",
)
TTFT_P50 = _model("llm_ttft_seconds:p50_5m", "Median time to first token in seconds, over 5m.")
TTFT_P95 = _model("llm_ttft_seconds:p95_5m", "95th percentile of time to first token in seconds, over 5m.")
ITL_BUCKETS = Recorded(
    name="model_le:llm_itl_bucket:rate5m",
    labels=(MODEL, LE),
    help="Requests per second whose mean inter-token latency is within each bound, over 5m.",
)
ITL_P50 = _model("llm_itl_seconds:p50_5m", "Median of requests' mean inter-token latency in seconds, over 5m.")
ITL_P95 = _model("llm_itl_seconds:p95_5m", "95th percentile of requests' mean inter-token latency in seconds, over 5m.")
GOODPUT_UPPER = _model(
    "llm_goodput_upper:rate5m",
    "Requests per second that met every objective, at most: as if misses fell on the same requests, over 5m.",
)


def groups() -> tuple[RuleGroup, ...]:
    """Build the rules that boards rely on."""
    return (
        RuleGroup(name="load", interval=INTERVAL, rules=_pools()),
        RuleGroup(name="load-states", interval=_WORK_INTERVAL, rules=(_by_state(),)),
        RuleGroup(name="load-requests", interval=_LOAD_INTERVAL, rules=_load()),
        RuleGroup(name="work", interval=_WORK_INTERVAL, rules=_work()),
        RuleGroup(name="latency-goodput", interval=TILE.interval, rules=_goodput()),
        RuleGroup(name="work-prefix-cache", interval=_MINUTELY, rules=_prefix_cache()),
        RuleGroup(name="latency", interval=_MINUTELY, rules=_latency()),
        RuleGroup(name="work-outcomes", interval=_MINUTELY, rules=_outcomes()),
        RuleGroup(name="peers", interval=_SLOWLY, rules=(*_means(), *_aborted())),
        RuleGroup(name="days", interval=_SLOWLY, rules=(_busy_hours(),)),
    )


def _pools() -> tuple[RecordingRule, ...]:
    """Count replicas without reading all of their states: pages cannot wait for those."""
    ready, asleep = (_each_replica(Matcher.equal(STATE, state)) for state in ("ready", "sleeping"))
    return (
        RecordingRule(recorded=REPLICAS_READY, expr=ready.aggregate("sum", MODEL)),
        RecordingRule(recorded=REPLICAS, expr=ready.aggregate("count", MODEL)),
        RecordingRule(recorded=REPLICAS_ASLEEP, expr=asleep.aggregate("sum", MODEL)),
        RecordingRule(recorded=REPLICAS_IN_ORDER, expr=REPLICAS_READY.select() + REPLICAS_ASLEEP.select()),
        _turns(),
    )


def _by_state() -> RecordingRule:
    return RecordingRule(recorded=REPLICAS_BY_STATE, expr=_each_replica().aggregate("sum", MODEL, STATE))


def _turns() -> RecordingRule:
    ready = select(REPLICA_STATE, Matcher.equal(STATE, "ready"))
    return RecordingRule(recorded=READY_CHANGES, expr=ready.changes(TILE.span).aggregate("max", MODEL))


def _each_replica(*matchers: Matcher) -> Expr:
    """Take one sample per replica: when discovery learns its engine, it has two sets of labels for a moment."""
    return select(REPLICA_STATE, *matchers).aggregate("max", MODEL, REPLICA, STATE)


def _load() -> tuple[RecordingRule, ...]:
    return (
        RecordingRule(recorded=RUNNING, expr=_held(REQUESTS_RUNNING)),
        RecordingRule(recorded=WAITING, expr=_held(REQUESTS_WAITING)),
        RecordingRule(recorded=KV_CACHE_MEAN, expr=select(KV_CACHE_USAGE).aggregate("avg", MODEL)),
        RecordingRule(recorded=KV_CACHE_MAX, expr=select(KV_CACHE_USAGE).aggregate("max", MODEL)),
    )


def _held(metric: Metric) -> Expr:
    """Sum what each rank held at its last scrape, so that a scrape that is lost does not look like a short queue."""
    return select(metric).over_time("last", _SEEN).aggregate("max", MODEL, REPLICA, RANK).aggregate("sum", MODEL)


def _means() -> tuple[RecordingRule, ...]:
    return (
        RecordingRule(recorded=REPLICA_TTFT_MEAN, expr=_mean(TTFT)),
        RecordingRule(recorded=REPLICA_ITL_MEAN, expr=_mean(TPOT)),
    )


def _mean(metric: Metric) -> Expr:
    taken, observed = (
        of(metric).rate(_HALF_HOUR).aggregate("sum", MODEL, REPLICA) * Seconds(span=_HALF_HOUR.span)
        for of in (sums, events)
    )
    return taken / observed.compare(">=", _FEWEST_REQUESTS)


def _aborted() -> tuple[RecordingRule, ...]:
    """Count what nobody counts: vLLM forgets a request whose client is gone, after it has observed its first token."""
    ended, aborted = (
        select(REQUESTS_FINISHED, *matchers).rate(_HALF_HOUR).aggregate("sum", MODEL)
        for matchers in ((), (Matcher.equal(OUTCOME, "abort"),))
    )
    # Over the same window as what ended: rates over other ones lose other requests with a lost scrape.
    begun, vanished = events(TTFT).rate(_HALF_HOUR).aggregate("sum", MODEL), VANISHED_RATE.select()
    return (
        RecordingRule(recorded=VANISHED_RATE, expr=(begun - ended).call("clamp_min", 0)),
        RecordingRule(recorded=ABORTED_RATE, expr=(vanished + aborted).union(vanished)),
    )


def _busy_hours() -> RecordingRule:
    return RecordingRule(recorded=KV_CACHE_BUSY, expr=KV_CACHE_MEAN.select().busiest(_TAIL, timedelta(days=1)))


def _work() -> tuple[RecordingRule, ...]:
    return (
        RecordingRule(recorded=PREEMPTION_RATE, expr=_rate(PREEMPTIONS)),
        RecordingRule(recorded=PROMPT_TOKEN_RATE, expr=_rate(PROMPT_TOKENS)),
        RecordingRule(recorded=GENERATION_TOKEN_RATE, expr=_rate(GENERATION_TOKENS)),
    )


def _outcomes() -> tuple[RecordingRule, ...]:
    finished, rejected = FINISHED_RATE.select(), REJECTED_RATE.select()
    return (
        RecordingRule(
            recorded=FINISHED_RATE, expr=select(REQUESTS_FINISHED).rate(RECENT).aggregate("sum", MODEL, OUTCOME)
        ),
        RecordingRule(recorded=REJECTED_RATE, expr=_rate(REQUESTS_REJECTED)),
        RecordingRule(recorded=REQUEST_RATE, expr=finished.union(rejected).aggregate("sum", MODEL)),
    )


def _prefix_cache() -> tuple[RecordingRule, ...]:
    hits, queries = (
        select(metric).rate(TILE).aggregate("sum", MODEL) for metric in (PREFIX_CACHE_HITS, PREFIX_CACHE_QUERIES)
    )
    return (
        RecordingRule(recorded=PREFIX_CACHE_HIT_RATE, expr=hits),
        RecordingRule(recorded=PREFIX_CACHE_QUERY_RATE, expr=queries),
        # Without look-ups there is no ratio, rather than NaN or 0 %.
        RecordingRule(
            recorded=PREFIX_CACHE_HIT_RATIO,
            expr=PREFIX_CACHE_HIT_RATE.select() / PREFIX_CACHE_QUERY_RATE.select().compare(">", 0),
        ),
    )


def _rate(metric: Metric) -> Expr:
    return select(metric).rate(RECENT).aggregate("sum", MODEL)


def _latency() -> tuple[RecordingRule, ...]:
    return (
        RecordingRule(recorded=TTFT_BUCKETS, expr=_bucket_rates(TTFT)),
        RecordingRule(recorded=TTFT_P50, expr=TTFT_BUCKETS.select().quantile(_MEDIAN)),
        RecordingRule(recorded=TTFT_P95, expr=TTFT_BUCKETS.select().quantile(_TAIL)),
        RecordingRule(recorded=ITL_BUCKETS, expr=_bucket_rates(TPOT)),
        RecordingRule(recorded=ITL_P50, expr=ITL_BUCKETS.select().quantile(_MEDIAN)),
        RecordingRule(recorded=ITL_P95, expr=ITL_BUCKETS.select().quantile(_TAIL)),
    )


def _bucket_rates(metric: Metric) -> Expr:
    return buckets(metric).rate(TILE).aggregate("sum", MODEL, LE)


def _goodput() -> tuple[RecordingRule, ...]:
    """Bound goodput from above, where only the larger of the misses is subtracted; the indicator is the lower bound."""
    answered = AVAILABILITY.good(TILE).select()
    late, slow = _missed(TTFT_INDICATOR), _missed(ITL_INDICATOR)
    asked = AVAILABILITY.total(TILE).select()
    at_best = answered.minimum(asked - late).minimum(asked - slow)
    return (RecordingRule(recorded=GOODPUT_UPPER, expr=at_best.call("clamp_min", 0)),)


def _missed(indicator: Indicator) -> Expr:
    return indicator.total(TILE).select() - indicator.good(TILE).select()
