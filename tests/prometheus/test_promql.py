"""Expressions: what is right prints itself readably, what is wrong fails where it is written."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest

from exporter.catalogue import (
    KV_CACHE_USAGE,
    MODEL,
    OUTCOME,
    RANK,
    REPLICA,
    REPLICA_STATE,
    REQUESTS_FINISHED,
    REQUESTS_REJECTED,
    REQUESTS_RUNNING,
    STATE,
    TTFT,
)
from prometheus.promql import LE, Expr, Matcher, PromQLError, Seconds, number_text, quoted
from prometheus.series import Recorded, RecordingRule, buckets, events, select, sums, within
from prometheus.windows import TILE, TimeScale

FINISHED = select(REQUESTS_FINISHED)
RUNNING = select(REQUESTS_RUNNING)
PER_MODEL = FINISHED.rate(TILE).aggregate("sum", MODEL)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (PER_MODEL, "sum by (model) (rate(llm_requests_finished_total[5m]))"),
        (RUNNING.aggregate("sum"), "sum(llm_requests_running)"),
        (select(REPLICA_STATE, Matcher.equal(STATE, "ready")), 'llm_replica_state{state="ready"}'),
        (
            within(TTFT, 2.0, [2.0], Matcher.equal(MODEL, "m")),
            'llm_time_to_first_token_seconds_bucket{le="2.0",model="m"}',
        ),
        (events(TTFT), "llm_time_to_first_token_seconds_count"),
        (
            buckets(TTFT).rate(TILE).aggregate("sum", MODEL, LE).quantile(Decimal("0.95")),
            "histogram_quantile(0.95, sum by (model, le) (rate(llm_time_to_first_token_seconds_bucket[5m]))) >= 0",
        ),
        (
            RUNNING.over_time("max", timedelta(seconds=30)).compare("==", 0),
            "max_over_time(llm_requests_running[30s]) == 0",
        ),
        (
            RUNNING.over_time("sum", timedelta(hours=6), step=timedelta(minutes=5)) / 72,
            "sum_over_time(llm_requests_running[6h:5m]) / 72",
        ),
        (RUNNING - (RUNNING - RUNNING), "llm_requests_running - (llm_requests_running - llm_requests_running)"),
        (RUNNING - RUNNING - RUNNING, "llm_requests_running - llm_requests_running - llm_requests_running"),
        ((RUNNING + 1) * Decimal("0.050"), "(llm_requests_running + 1) * 0.05"),
        (1 - RUNNING / RUNNING.compare(">", 0), "1 - llm_requests_running / (llm_requests_running > 0)"),
        ((1 - RUNNING) / 2, "(1 - llm_requests_running) / 2"),
        ((1 - RUNNING).age(), "time() - (1 - llm_requests_running)"),
        (
            RUNNING.union(RUNNING).intersect(RUNNING),
            "(llm_requests_running\nor llm_requests_running)\nand llm_requests_running",
        ),
        (
            RUNNING.intersect(RUNNING).union(RUNNING),
            "llm_requests_running\nand llm_requests_running\nor llm_requests_running",
        ),
        (
            RUNNING.minimum(RUNNING + 1),
            "llm_requests_running <= llm_requests_running + 1\nor llm_requests_running + 1",
        ),
        (
            RUNNING.without(PER_MODEL, on=(MODEL,)),
            "llm_requests_running\nunless on (model) sum by (model) (rate(llm_requests_finished_total[5m]))",
        ),
        (
            RUNNING.union(RUNNING).unless_any(PER_MODEL.union(PER_MODEL)),
            f"(llm_requests_running\nor llm_requests_running)\nunless on () ({PER_MODEL}\nor {PER_MODEL})",
        ),
        (RUNNING.changes(timedelta(hours=1)), "changes(llm_requests_running[1h])"),
        (FINISHED.resets(timedelta(hours=1)), "resets(llm_requests_finished_total[1h])"),
        (RUNNING.busiest(Decimal("0.95"), timedelta(days=1)), "quantile_over_time(0.95, llm_requests_running[1d])"),
        (
            RUNNING.forecast(timedelta(days=7), timedelta(days=1)),
            "predict_linear(llm_requests_running[7d], 86400)",
        ),
        (RUNNING.absent(timedelta(minutes=1)), "max(absent_over_time(llm_requests_running[1m]))"),
        (RUNNING.median(MODEL), "quantile by (model) (0.5, llm_requests_running)"),
        (
            RUNNING.above(PER_MODEL * 2, on=(MODEL,)),
            f"llm_requests_running > on (model) group_left () {PER_MODEL} * 2",
        ),
        (
            sums(TTFT).rate(TILE) / events(TTFT).rate(TILE),
            "rate(llm_time_to_first_token_seconds_sum[5m]) / rate(llm_time_to_first_token_seconds_count[5m])",
        ),
    ],
    ids=str,
)
def test_an_expression_prints_itself_with_the_parentheses_it_needs(expr: Expr, text: str) -> None:
    assert expr.text() == text


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda: RUNNING.rate(TILE), "rate() needs a raw counter"),
        (lambda: FINISHED.rate(TILE).rate(TILE), "rate() needs a raw counter"),
        (lambda: FINISHED.aggregate("sum", MODEL), "hide counter resets"),
        (lambda: FINISHED / FINISHED, "hide counter resets"),
        (lambda: FINISHED.compare(">", 0), "hide counter resets"),
        (lambda: RUNNING / FINISHED, "hide counter resets"),
        (lambda: 1 - FINISHED, "hide counter resets"),
        (lambda: FINISHED.over_time("max", timedelta(minutes=5)), "hide counter resets"),
        (lambda: buckets(TTFT).quantile(Decimal("0.5")), "hide counter resets"),
        (lambda: FINISHED.changes(timedelta(hours=1)), "hide counter resets"),
        (lambda: RUNNING.resets(timedelta(hours=1)), "resets() needs a raw counter"),
        (lambda: RUNNING.above(PER_MODEL, on=(REPLICA,)), "no label 'replica'"),
        (lambda: FINISHED.above(PER_MODEL, on=(MODEL,)), "hide counter resets"),
        (lambda: FINISHED.forecast(timedelta(days=7), timedelta(days=1)), "hide counter resets"),
        (lambda: PER_MODEL.median(REPLICA), "no label 'replica'"),
        (lambda: select(TTFT), "is a histogram"),
        (lambda: buckets(REQUESTS_RUNNING), "expected a histogram"),
        (lambda: events(REQUESTS_RUNNING), "expected a histogram"),
        (lambda: within(TTFT, 2.0, TTFT.buckets), "has no bucket 2.0"),
        (lambda: select(REQUESTS_RUNNING, Matcher.equal(OUTCOME, "stop")), "has no label 'outcome'"),
        (lambda: select(REQUESTS_REJECTED, Matcher.equal(RANK, "0")), "has no label 'rank'"),
        (lambda: Matcher.equal(OUTCOME, "stopped"), "got 'stopped'"),
        (lambda: Matcher.among(STATE, ("ready", "up")), "got 'up'"),
        (lambda: select(REQUESTS_REJECTED).rate(TILE).aggregate("sum", RANK), "no label 'rank'"),
        (lambda: PER_MODEL.aggregate("sum", REPLICA), "no label 'replica'"),
        (lambda: buckets(TTFT).rate(TILE).aggregate("sum", MODEL).quantile(Decimal("0.95")), "no label 'le'"),
        (lambda: PER_MODEL / select(REQUESTS_REJECTED).rate(TILE).aggregate("sum", MODEL, REPLICA), "labels differ"),
        (lambda: PER_MODEL.intersect(RUNNING), "labels differ"),
        (lambda: RUNNING.without(PER_MODEL, on=(REPLICA,)), "no label 'replica'"),
        (lambda: Recorded(name="llm_running", labels=(MODEL,), help=""), "has colons"),
        (
            lambda: RecordingRule(recorded=Recorded(name="a:b:c", labels=(MODEL, LE), help=""), expr=PER_MODEL),
            "promises labels",
        ),
    ],
)
def test_a_wrong_expression_fails_where_it_is_written(mistake: Callable[[], object], message: str) -> None:
    with pytest.raises(PromQLError, match=message.replace("(", r"\(").replace(")", r"\)")):
        mistake()


def test_no_float_can_enter_a_rule() -> None:
    with pytest.raises(PromQLError, match=r"got the float 0\.05"):
        RUNNING * (1 - 0.95)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("matcher", "text"),
    [
        (Matcher.equal(MODEL, 'say "hi"\\'), r'model="say \"hi\"\\"'),
        (Matcher.unequal(MODEL, ""), 'model!=""'),
        (Matcher.among(MODEL, ("org/a&b",)), 'model="org/a&b"'),
        (Matcher.among(MODEL, ("a.b", "c|d", "模型")), r'model=~"a\\.b|c\\|d|模型"'),
        (Matcher.outside(MODEL, ("x",)), 'model!="x"'),
        (Matcher.outside(MODEL, ("x+", "(y)")), r'model!~"x\\+|\\(y\\)"'),
    ],
)
def test_any_model_name_is_matched_literally(matcher: Matcher, text: str) -> None:
    assert matcher.text == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1 - Decimal("0.999"), "0.001"),
        (Decimal("14.40"), "14.4"),
        (Decimal("1E+2"), "100"),
        (Decimal("1E-7"), "0.0000001"),
        (20, "20"),
        (0, "0"),
    ],
)
def test_numbers_are_printed_exactly_and_without_exponent(number: Decimal | int, text: str) -> None:
    assert number_text(number) == text


def test_spans_and_their_seconds_shrink_with_the_time_scale() -> None:
    expr = KV_USAGE.over_time("avg", timedelta(hours=6), step=timedelta(minutes=5)) * Seconds(span=timedelta(hours=1))
    assert expr.text(TimeScale(factor=60)) == "avg_over_time(llm_kv_cache_usage_ratio[6m:5s]) * 60"
    assert expr.text(TimeScale(factor=7)) == "avg_over_time(llm_kv_cache_usage_ratio[3085714ms:42857ms]) * 514.285"


KV_USAGE = select(KV_CACHE_USAGE)


def test_text_is_quoted_for_promql() -> None:
    assert quoted('a"b\\c\nd') == r'"a\"b\\c\nd"'
