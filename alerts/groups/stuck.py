"""Stuck: a replica says that it is ready, requests run or wait in it, and no token comes out.

An engine that hangs freezes its gauges, so what it holds now is what it held when it stopped; its HTTP server goes on
answering. Gauges also freeze when every client of a busy vLLM leaves at once, and nothing but a request can tell the
two apart: whoever is woken sends one, which brings the gauges back to life if it is only that.

vLLM counts tokens as they come. Engines that count the tokens of a request when it ends are given longer than any
answer takes, and so is a counter printed with six digits, of which a step may be many tokens.

How soon it is on the phone, at worst: the last token leaves the window after 130 s, the alert stays pending for 15 s,
rules wait 15 s and scrapes 10 s, Alertmanager waits 5 s: 175 s.
"""

from collections.abc import Iterator
from datetime import timedelta

from alerts.annotations import OF_MODEL, REPLICA_AND_ADDRESS, REPLICA_NAME
from alerts.model import Alert, AlertGroup, AlertRule, Louder, Severity
from exporter.catalogue import (
    ENGINE,
    GENERATION_TOKENS,
    MODEL,
    OUTCOME,
    PROMPT_TOKENS,
    RANK,
    REPLICA,
    REPLICA_STATE,
    REQUESTS_FINISHED,
    REQUESTS_RUNNING,
    REQUESTS_WAITING,
    STATE,
    Metric,
)
from exporter.fleet import Fleet
from prometheus.partition import partition
from prometheus.promql import Expr, Matcher, Seconds
from prometheus.series import select
from prometheus.windows import INTERVAL, Window

__all__ = ["GROUP"]

_INTERVAL = timedelta(seconds=20)
_COUNTS_AS_THEY_COME = "vllm"
_ANSWERED = Matcher.among(OUTCOME, ("stop", "length", "other"))
_PROGRESS: tuple[tuple[Metric, tuple[Matcher, ...]], ...] = (
    (GENERATION_TOKENS, ()),
    (PROMPT_TOKENS, ()),
    (REQUESTS_FINISHED, (_ANSWERED,)),
)
"""An embedding model generates no tokens, and a long prompt takes its time. Clients that give up are no progress."""
_OWN = (MODEL, REPLICA)
_EACH_RANK = (MODEL, REPLICA, RANK)


def _stuck(fleet: Fleet) -> Expr:
    first, *others = _of_engines(fleet)
    return first.union(*others)


def _of_engines(fleet: Fleet) -> Iterator[Expr]:
    for part in partition(fleet.thresholds, lambda of: of.stuck_after):
        yield _held_without_progress(part.value, Matcher.equal(ENGINE, _COUNTS_AS_THEY_COME), *part.matchers)
    for part in partition(fleet.thresholds, lambda of: of.stuck_after_booking):
        yield _held_without_progress(part.value, Matcher.unequal(ENGINE, _COUNTS_AS_THEY_COME), *part.matchers)


def _held_without_progress(span: timedelta, *matchers: Matcher) -> Expr:
    """Count the requests held all the time by a rank in which nothing moved; one rank may hang while others go on."""
    running, waiting = (
        select(metric, *matchers).over_time("min", span).aggregate("sum", *_EACH_RANK)
        for metric in (REQUESTS_RUNNING, REQUESTS_WAITING)
    )
    moved = (
        select(metric, *of, *matchers).rate(Window(span=span)).aggregate("sum", *_EACH_RANK).compare(">", 0)
        for metric, of in _PROGRESS
    )
    held = (running + waiting).compare(">", 0).without(*moved)
    return held.aggregate("sum", *_OWN).intersect(_ready(span, *matchers), on=_OWN)


def _ready(span: timedelta, *matchers: Matcher) -> Expr:
    """Require that the replica was ready for most of the span: one that has just started is slow at first."""
    ready = select(REPLICA_STATE, Matcher.equal(STATE, "ready"), *matchers).over_time("sum", span)
    return (ready.aggregate("sum", *_OWN) * Seconds(span=INTERVAL)).compare(">=", Seconds(span=span * 2 / 3))


GROUP = AlertGroup(
    name="stuck",
    interval=_INTERVAL,
    alerts=(
        Alert(
            name="LLMReplicaStuck",
            meaning="A replica that says it is ready holds requests, and for minutes no token has come out of it.",
            rules=(AlertRule(severity=Severity.PAGE, expression=_stuck, delay=_INTERVAL),),
            summary=f"{OF_MODEL}replica {REPLICA_NAME} is stuck",
            description=lambda _: (
                f"{REPLICA_AND_ADDRESS} holds {{{{ $value }}}} requests, says that it is ready, and has given no token"
                " for minutes. Its users wait for nothing until it is restarted."
            ),
            board="fleet",
            drill="replica-stuck",
            quiet_while=(Louder(alertname="LLMModelDown"),),
        ),
    ),
)
