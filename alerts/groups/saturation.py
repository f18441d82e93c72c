"""Saturation: more is asked of a model than it can give. None of these pages: what users feel of it does.

A KV cache that is full is a good use of it. It is trouble only where requests wait for it or lose it to each other. And
gauges that have frozen, as vLLM's do when every client leaves at once, are no saturation: tokens have to come out.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from functools import partial

from alerts.annotations import MODEL_NAME, REPLICA_AND_ADDRESS, REPLICA_NAME
from alerts.model import Alert, AlertGroup, AlertRule, Louder, Severity
from exporter.catalogue import (
    GENERATION_TOKENS,
    KV_CACHE_USAGE,
    MODEL,
    PREEMPTIONS,
    REPLICA,
    REQUESTS_WAITING,
)
from exporter.fleet import Fleet
from exporter.thresholds import Thresholds
from prometheus.indicators import TTFT_INDICATOR
from prometheus.partition import partition
from prometheus.promql import Expr, Matcher, Seconds
from prometheus.recording import (
    ABORTED_RATE,
    GENERATION_TOKEN_RATE,
    PREEMPTION_RATE,
    PREFIX_CACHE_HIT_RATE,
    PREFIX_CACHE_QUERY_RATE,
    REJECTED_RATE,
    REPLICAS_READY,
    REQUEST_RATE,
    WAITING,
)
from prometheus.series import Recorded, select
from prometheus.windows import SHORT, TILE

__all__ = ["GROUP"]

_SEEN = timedelta(minutes=1)
_LATELY = timedelta(minutes=10)
_HALF_HOUR = SHORT[1].span
_DAY = timedelta(days=1)
_OWN = (MODEL, REPLICA)
_FEW = 5
_FEWEST_REQUESTS = 20
_USUAL_HITS = Decimal("0.2")
"""Share of prompt tokens that a prefix cache has to find usually, for its loss to matter."""
_DOWN = Louder(alertname="LLMModelDown")

Condition = Callable[..., Expr]


def _per_part(setting: Callable[[Thresholds], Decimal | int], condition: Condition, fleet: Fleet) -> Expr:
    """Build a condition for each value of a threshold."""
    first, *others = (condition(part.value, *part.matchers) for part in partition(fleet.thresholds, setting))
    return first.union(*others)


def _queue(limit: int, *matchers: Matcher) -> Expr:
    """Find queues that were never shorter than the limit for minutes, in models that go on giving tokens."""
    ready = REPLICAS_READY.select(*matchers).over_time("max", _SEEN).compare(">", 0)
    shortest = WAITING.select(*matchers).over_time("min", _LATELY) / ready
    return shortest.compare(">", limit).intersect(GENERATION_TOKEN_RATE.select().compare(">", 0))


def _kv_cache(limit: Decimal, *matchers: Matcher) -> Expr:
    full = select(KV_CACHE_USAGE, *matchers).over_time("avg", TILE.span).aggregate("max", *_OWN).compare(">", limit)
    preempts = select(PREEMPTIONS).rate(TILE).aggregate("sum", *_OWN).compare(">", 0)
    queues = select(REQUESTS_WAITING).over_time("avg", TILE.span).aggregate("sum", *_OWN).compare(">", 1)
    moves = select(GENERATION_TOKENS).rate(TILE).aggregate("sum", *_OWN).compare(">", 0)
    return full.intersect(preempts.union(queues), on=_OWN).intersect(moves, on=_OWN)


def _mean(recorded: Recorded, span: timedelta, *matchers: Matcher) -> Expr:
    """Average a recorded rate: what happened within the span, per second."""
    return recorded.select(*matchers).over_time("avg", span)


def _share(part: Expr, whole: Expr, limit: Decimal, span: timedelta, fewest: int) -> Expr:
    """Divide one rate by another, where the share is above a limit and enough events stand behind it."""
    enough = (part * Seconds(span=span)).compare(">=", fewest)
    return (part / whole.compare(">", 0)).compare(">", limit).intersect(enough)


def _preempted(limit: Decimal, *matchers: Matcher) -> Expr:
    preempted = _mean(PREEMPTION_RATE, _LATELY, *matchers)
    return _share(preempted, _mean(REQUEST_RATE, _LATELY), limit, _LATELY, _FEWEST_REQUESTS)


def _rejected(limit: Decimal, *matchers: Matcher) -> Expr:
    return _share(_mean(REJECTED_RATE, _LATELY, *matchers), _mean(REQUEST_RATE, _LATELY), limit, _LATELY, _FEW)


def _aborted(limit: Decimal, *matchers: Matcher) -> Expr:
    first_tokens = _mean(TTFT_INDICATOR.total(TILE), _HALF_HOUR)
    return _share(ABORTED_RATE.select(*matchers), first_tokens, limit, _HALF_HOUR, _FEWEST_REQUESTS)


def _prefix_cache(loss: Decimal, *matchers: Matcher) -> Expr:
    """Compare the last half hour with the last day."""
    now, usual = _hits(_HALF_HOUR, *matchers), _hits(_DAY, *matchers)
    return now.compare("<", usual * (1 - loss)).intersect(usual.compare(">", _USUAL_HITS))


def _hits(span: timedelta, *matchers: Matcher) -> Expr:
    """Divide what was found by what was looked up, both summed over the span."""
    found, sought = (
        of.select(*matchers).over_time("sum", span, step=TILE.span)
        for of in (PREFIX_CACHE_HIT_RATE, PREFIX_CACHE_QUERY_RATE)
    )
    return found / sought.compare(">", 0)


def _ticket(  # noqa: PLR0913 - one argument for each thing an alert says
    name: str,
    expression: Callable[[Fleet], Expr],
    *,
    meaning: str,
    summary: str,
    description: str,
    delay: timedelta = timedelta(minutes=5),
    keep: timedelta = timedelta(minutes=15),
    every: timedelta | None = None,
) -> Alert:
    return Alert(
        name=name,
        meaning=meaning,
        rules=(AlertRule(severity=Severity.TICKET, expression=expression, delay=delay, keep=keep, every=every),),
        summary=f"{MODEL_NAME}: {summary}",
        description=lambda _: description,
        board="fleet",
        quiet_while=(_DOWN,),
    )


def _expressions() -> Iterator[tuple[str, Callable[[Fleet], Expr]]]:
    yield "queue", partial(_per_part, lambda of: of.queue, _queue)
    yield "kv_cache", partial(_per_part, lambda of: of.kv_cache, _kv_cache)
    yield "preempted", partial(_per_part, lambda of: of.preempted, _preempted)
    yield "prefix_cache", partial(_per_part, lambda of: of.prefix_cache, _prefix_cache)
    yield "rejected", partial(_per_part, lambda of: of.rejected, _rejected)
    yield "aborted", partial(_per_part, lambda of: of.aborted, _aborted)


_WHEN = dict(_expressions())
_PERCENT = "{{ $value | humanizePercentage }}"

GROUP = AlertGroup(
    name="saturation",
    interval=timedelta(minutes=1),
    alerts=(
        _ticket(
            "LLMQueueGrowing",
            _WHEN["queue"],
            meaning="Requests come faster than a model serves them: its queue has been long for minutes.",
            summary="requests wait in a queue that does not drain",
            description=(
                'Within 10m never fewer than {{ $value | printf "%.0f" }} requests waited for each ready replica of'
                f" {MODEL_NAME}. Every new one waits longer for its first token."
            ),
        ),
        _ticket(
            "LLMKVCachePressure",
            _WHEN["kv_cache"],
            meaning="A replica's KV cache is full, and requests wait for it or lose it to each other.",
            summary=f"the KV cache of replica {REPLICA_NAME} is full",
            description=(
                f"Over 5m {_PERCENT} of the KV cache of {REPLICA_AND_ADDRESS} were in use,"
                " and requests queued or were preempted."
            ),
            every=timedelta(minutes=2),
        ),
        _ticket(
            "LLMPreemptionStorm",
            _WHEN["preempted"],
            meaning="Requests lose their KV cache to each other so often that much work is done twice.",
            summary="requests are preempted again and again",
            description=f"Within 10m there were {_PERCENT} as many preemptions as requests to {MODEL_NAME}.",
        ),
        _ticket(
            "LLMPrefixCacheCollapse",
            _WHEN["prefix_cache"],
            meaning="The prefix cache finds far less than usual: prompts are computed that used to be remembered.",
            summary="the prefix cache finds far less than usual",
            description=(
                f"Over 30m only {_PERCENT} of the looked-up prompt tokens were found, far less than over the last day."
                " First tokens come later, and more compute goes into prompts."
            ),
            delay=timedelta(minutes=10),
        ),
        _ticket(
            "LLMRequestsRejected",
            _WHEN["rejected"],
            meaning="Requests are turned away because the queue is full.",
            summary="requests are turned away",
            description=f"Within 10m {_PERCENT} of the requests to {MODEL_NAME} were turned away, not admitted.",
        ),
        _ticket(
            "LLMAbortSurge",
            _WHEN["aborted"],
            meaning="Clients hang up on many of their requests: they give up, or somebody is in trouble there.",
            summary="clients hang up before the answer ends",
            description=f"Within 30m {_PERCENT} of the requests to {MODEL_NAME} lost their client before they ended.",
            delay=timedelta(minutes=10),
        ),
    ),
)
