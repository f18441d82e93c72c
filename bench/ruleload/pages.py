"""Pages: what the exporter would show of a replica, as a function of time, so that the past needs no memory.

In: a fleet, a model, a Unix time. Out: the page's text; and samples of the past as OpenMetrics text, where rules look
back further than a run lasts. Replicas of a model show the same values: rules add them up all the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import isinf

from exporter.buckets import layouts
from exporter.catalogue import (
    DRAIN_EXPIRY,
    GENERATION_TOKENS,
    KV_CACHE_USAGE,
    METRICS,
    MISSING_SERIES,
    MODEL,
    RANK,
    REPLICA_DRAINING,
    REPLICA_STATE,
    REQUEST_DURATION,
    REQUESTS_FINISHED,
    REQUESTS_REJECTED,
    REQUESTS_WAITING,
    SCRAPE_DURATION,
    STATE,
    TPOT,
    TTFT,
    Group,
    Kind,
    Metric,
    bound_text,
)
from exporter.fleet import Fleet, Replica
from exporter.objectives import Slos
from prometheus.indicators import COUNTED
from prometheus.windows import TILE

__all__ = ["Sample", "page", "past_counters", "past_tiles", "samples"]

_SHOWN = (Group.STATE, Group.LOAD, Group.WORK, Group.OUTCOME, Group.LATENCY, Group.SIZE)
_RATE = 2.0
"""Requests per second of a replica."""
_RARE = _RATE / 100_000
"""Of each thing that may go wrong: so little that it endangers no budget."""
_FAST = 2
"""Bounds that half of the requests are within; the next one nearly all of them are."""
_HEALTHY = {REPLICA_DRAINING: 0.0, REQUESTS_WAITING: 0.0, KV_CACHE_USAGE: 0.5}
_ONLY_IN_TROUBLE = (DRAIN_EXPIRY, MISSING_SERIES)
_EPOCH = 1_700_000_000
_BUDGET_DAYS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A series of a replica's page; `rate` is what it grows by per second, `constant` what it is otherwise."""

    metric: Metric
    name: str
    labels: str
    rate: float = 0.0
    constant: float = 0.0

    def value(self, now: float) -> float:
        """Return what it shows at a moment."""
        return self.constant + int(self.rate * (now - _EPOCH)) if self.rate else self.constant


def samples(slos: Slos, model: str) -> tuple[Sample, ...]:
    """Return every series that a replica of a model has as long as nothing is wrong with it."""
    shown = (metric for metric in METRICS if metric.group in _SHOWN and metric not in _ONLY_IN_TROUBLE)
    return tuple(sample for metric in shown for sample in _of(metric, slos, model))


def _of(metric: Metric, slos: Slos, model: str) -> Iterator[Sample]:
    known = [label for label in metric.labels if label is not RANK]
    for values in product(*((model,) if label is MODEL else label.values or ("x",) for label in known)):
        text = ",".join(f'{label.name}="{value}"' for label, value in zip(known, values, strict=True))
        if metric.kind is Kind.HISTOGRAM:
            yield from _histogram(metric, slos, text)
        elif metric.kind is Kind.COUNTER:
            yield Sample(metric=metric, name=metric.name, labels=text, rate=_RATE if "stop" in values else _RARE)
        else:
            other = metric is REPLICA_STATE and values[known.index(STATE)] != "ready"
            value = 0.0 if other else _HEALTHY.get(metric, 1.0)
            yield Sample(metric=metric, name=metric.name, labels=text, constant=value)


def _histogram(metric: Metric, slos: Slos, labels: str) -> Iterator[Sample]:
    bounds = layouts(slos)[metric.name]
    for number, bound in enumerate(bounds, 1):
        within = _RATE / 2 if number <= _FAST else _RATE - _RARE
        le = f'{labels},le="{bound_text(bound)}"'
        yield Sample(metric=metric, name=metric.bucket, labels=le, rate=_RATE if isinf(bound) else within)
    yield Sample(metric=metric, name=metric.count, labels=labels, rate=_RATE)
    yield Sample(metric=metric, name=metric.sum, labels=labels, rate=_RATE)


def page(shown: tuple[Sample, ...], now: float) -> bytes:
    """Write a page as the exporter does."""
    return "".join([f"{each.name}{{{each.labels}}} {each.value(now):.10g}\n" for each in shown]).encode()


def past_counters(fleet: Fleet, targets: dict[str, str], now: int, seconds: int, step: int) -> Iterator[str]:
    """Write the past of the series that rules read over more than a few minutes."""
    moments = range(now - seconds, now, step)
    of_model = {model: _long(fleet.slos, model) for model in {str(replica.model) for replica in fleet.replicas}}
    for replica in fleet.replicas:
        for each in of_model[str(replica.model)]:
            labels = ",".join(filter(None, (each.labels, _target(replica, targets))))
            head = f"{each.name}{{{labels}}}"
            yield "".join([f"{head} {each.value(moment):.10g} {moment}\n" for moment in moments])


def _long(slos: Slos, model: str) -> tuple[Sample, ...]:
    def wanted(each: Sample) -> bool:
        if each.metric is REPLICA_STATE:
            return '"ready"' in each.labels or '"loading"' in each.labels
        if each.metric in (TTFT, TPOT, REQUEST_DURATION):
            return each.name != each.metric.bucket
        return each.metric in (REQUESTS_FINISHED, REQUESTS_REJECTED, GENERATION_TOKENS, SCRAPE_DURATION)

    return tuple(filter(wanted, samples(slos, model)))


def _target(replica: Replica, targets: dict[str, str]) -> str:
    fixed = ",".join(f'{name}="{value}"' for name, value in targets.items())
    return f'replica="{replica.name}",engine="{replica.engine}",{fixed}'


def past_tiles(fleet: Fleet, now: int) -> Iterator[str]:
    """Write the recorded rates that windows of hours and days are summed from."""
    span = int(TILE.span.total_seconds())
    moments = range((now - _BUDGET_DAYS * 86400) // span * span, now, span)
    for model in sorted({str(replica.model) for replica in fleet.replicas}):
        for indicator in COUNTED:
            for recorded, value in ((indicator.good(TILE), 99.999), (indicator.total(TILE), 100.0)):
                head = f'{recorded.name}{{{MODEL.name}="{model}"}}'
                yield "".join([f"{head} {value} {moment}\n" for moment in moments])
