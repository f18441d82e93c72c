"""Inline: what becomes of recorded series in a query."""

import pytest

from drills.backtest.inline import Question, Rules, seconds

RULES = """
groups:
- name: tiles
  interval: 10s
  rules:
  - record: model:good:rate5m
    expr: sum by (model) (rate(llm_good_total{outcome="stop"}[5m]))
  - record: model:total:rate5m
    expr: sum by (model) (rate(llm_all_total[5m]))
  - record: model:good:rate2h
    expr: sum_over_time(model:good:rate5m[2h:5m]) / 24
- name: burn
  interval: 30s
  rules:
  - record: model:burn:rate5m
    expr: 1 - model:good:rate5m / model:total:rate5m
    labels: {slo: ttft}
  - record: model:burn:rate5m
    expr: 2 - model:good:rate5m
    labels: {slo: itl}
- name: alerts
  interval: 10s
  rules:
  - alert: Now
    expr: model:burn:rate5m{slo="ttft",model="a|b"} > 1
    for: 1m
    keep_firing_for: 1h 5m
    labels: {severity: page}
  - alert: Either
    expr: (model:good:rate5m or model:total:rate5m) > 1 or model:good:rate2h > 1
    labels: {severity: ticket}
  - alert: Range
    expr: max_over_time(model:good:rate5m[10m]) > 1
    labels: {severity: ticket}
  - alert: Before
    expr: model:good:rate5m offset 5m > max_over_time(model:good:rate5m[10m] offset 1h)
    labels: {severity: ticket}
"""
GOOD, TOTAL = "model:good:rate5m", "model:total:rate5m"


def question(alert: str, *kept: str) -> Question:
    (found,) = Rules([RULES], frozenset(kept)).questions([alert])
    return found


def test_matchers_go_down_and_labels_are_added() -> None:
    (branch,) = question("Now", GOOD, TOTAL).branches
    assert branch.query == (
        f'(label_replace(1 - {GOOD}{{model="a|b"}} / {TOTAL}{{model="a|b"}}, "slo", "ttft", "", "")) > 1'
    )


def test_without_anything_kept_only_scraped_series_are_left() -> None:
    (branch,) = question("Now").branches
    assert 'rate(llm_good_total{model="a|b",outcome="stop"}[5m])' in branch.query
    assert 'rate(llm_all_total{model="a|b"}[5m])' in branch.query
    assert "model:" not in branch.query


def test_delays_add_up_along_the_longest_chain() -> None:
    assert question("Now").branches[0].lag == 10 + 30 + 10
    assert [branch.lag for branch in question("Either").branches] == [20, 20]


def test_rules_of_one_group_do_not_wait_for_each_other() -> None:
    (branch,) = Rules([RULES], frozenset()).branches("model:good:rate2h", 10, whole=True)
    assert branch.lag == 20


def test_an_alert_is_taken_apart_at_its_outermost_or_only() -> None:
    queries = [branch.query.strip() for branch in question("Either", GOOD, TOTAL).branches]
    assert queries == [f"({GOOD} or {TOTAL}) > 1", f"((sum_over_time({GOOD}[2h:5m]) / 24)) > 1"]


def test_a_range_of_a_recorded_series_becomes_a_subquery_of_its_interval() -> None:
    (branch,) = question("Range").branches
    assert ")))[10m:10s]) > 1" in branch.query


def test_what_a_recorded_series_was_is_asked_of_what_records_it() -> None:
    (branch,) = question("Before").branches
    was, before = (
        f'((sum by (model) (rate(llm_good_total{{outcome="stop"}}[5m] offset {shift}))))' for shift in ("5m", "1h")
    )
    assert branch.query == f"{was} > max_over_time({before}[10m:10s])"
    (kept,) = question("Before", GOOD).branches
    assert kept.query == f"{GOOD} offset 5m > max_over_time({GOOD}[10m] offset 1h)"


def test_shifts_add_up() -> None:
    rules = """
groups:
- name: a
  interval: 10s
  rules:
  - record: model:new:count
    expr: count(llm_all{le="a offset 1m"} offset 5m unless llm_good offset 5m)
  - record: model:was:count
    expr: model:new:count offset 1h
"""
    assert Rules([rules], frozenset()).recording("model:was:count") == (
        '((count(llm_all{le="a offset 1m"} offset 65m unless llm_good offset 65m)))'
    )


def test_delays_of_the_alert_itself_are_read() -> None:
    found = question("Now")
    assert (found.delay, found.keep, found.severity) == (60, 3900, "page")


@pytest.mark.parametrize(
    ("text", "expected"), [("90m", 5400), ("1h30m", 5400), ("250ms", 0.25), ("0s", 0), ("30d", 2592000)]
)
def test_durations_are_read_as_prometheus_writes_them(text: str, expected: float) -> None:
    assert seconds(text) == pytest.approx(expected)
