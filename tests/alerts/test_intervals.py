"""How often rules are evaluated: seldom enough to be cheap, often enough for what waits for them."""

from datetime import timedelta

import pytest
import yaml

from alerts.catalogue import GROUPS
from alerts.model import Severity
from drills.backtest.inline import Rules, seconds
from exporter.fleet import Fleet
from tests.prometheus.fleets import rule_files

LOOKBACK = 300
"""Seconds after which Prometheus takes a series without samples for gone."""

FILES = tuple(rule_files().values())


def test_no_recorded_series_blinks_when_an_evaluation_is_left_out() -> None:
    groups = [group for text in FILES for group in yaml.safe_load(text)["groups"]]
    assert all(2 * seconds(group["interval"]) < LOOKBACK for group in groups)


@pytest.mark.parametrize(("alert", "lag"), [("LLMModelDown", 15), ("LLMGoodputCollapse", 40), ("LLMReplicaStuck", 20)])
def test_a_page_waits_for_rules_no_longer_than_its_promise_says(alert: str, lag: float) -> None:
    questions = [each for each in Rules(FILES, frozenset()).questions([alert]) if each.severity == "page"]
    assert max(branch.lag for each in questions for branch in each.branches) <= lag


@pytest.mark.parametrize(
    "alert", ["LLMTimeToFirstTokenBudgetBurn", "LLMAvailabilityBudgetBurn", "LLMGoodputBudgetBurn"]
)
def test_a_budget_that_is_spent_within_minutes_pages_before_half_as_much_again_is_spent(alert: str) -> None:
    """Two minutes of it are the first that give a page less than three minutes."""
    (question,) = (each for each in Rules(FILES, frozenset()).questions([alert]) if each.severity == "page")
    assert min(branch.lag for branch in question.branches) <= 40


def test_only_tickets_wait_longer_than_their_group() -> None:
    for group in GROUPS:
        for rule in (rule for alert in group.alerts for rule in alert.rules):
            if rule.every:
                assert rule.severity is Severity.TICKET
                assert rule.every > group.interval


def test_alerts_of_one_subject_are_groups_by_interval() -> None:
    (replicas,) = (group for group in GROUPS if group.name == "replicas")
    by_interval = replicas.by_interval(Fleet(replicas=()))
    names = {interval: [alert.name for alert, _ in rules] for interval, rules in by_interval.items()}
    assert names == {timedelta(seconds=5): ["LLMModelDown"], timedelta(minutes=1): ["LLMReplicaDown"]}
