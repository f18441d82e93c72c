"""Burn-rate factors: the textbook's where they can be reached, and exact."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.burnrate import BURN_RULES, REACHABLE, factor, in_danger
from alerts.model import Severity
from exporter.fleet import Fleet
from exporter.objectives import Objectives, RatioObjective, Slos
from prometheus.indicators import AVAILABILITY

MONTH, WEEK, DAY = timedelta(days=30), timedelta(days=7), timedelta(days=1)


@pytest.mark.parametrize(
    ("window", "objective", "factors"),
    [
        (MONTH, "0.999", "14.4 6 3 1"),
        (MONTH, "0.95", "14.4 6 3 1"),
        (MONTH, "0.93", "11.42 6 3 1"),
        (MONTH, "0.9", "8 6 3 1"),
        (MONTH, "0.5", "1.6 1.6 1.6 1"),
        (MONTH, "0.1", "1 1 1 1"),
        (WEEK, "0.999", "3.36 2 1 1"),
        (DAY, "0.999", "2 2 1 1"),
        (DAY, "0.5", "1.6 1.6 1 1"),
    ],
)
def test_factors_follow_from_window_share_and_objective(window: timedelta, objective: str, factors: str) -> None:
    found = [factor(rule, window, Decimal(objective)) for rule in BURN_RULES]
    assert found == [Decimal(each) for each in factors.split()]


@given(
    objective=st.decimals(min_value="0.001", max_value="0.99999", places=5),
    days=st.integers(min_value=1, max_value=365),
)
def test_no_rule_waits_for_more_bad_requests_than_there_can_be(objective: Decimal, days: int) -> None:
    for rule in BURN_RULES:
        wanted = factor(rule, timedelta(days=days), objective)
        assert wanted * (1 - objective) <= max(REACHABLE, 1 - objective)
        assert wanted >= 1, "a budget that lasts is in no danger"


def test_objectives_are_exact_in_rules() -> None:
    slos = Slos(models={"m": Objectives(availability=RatioObjective(objective=Decimal("0.9999")))})
    text = in_danger(AVAILABILITY, Severity.PAGE, Fleet(replicas=(), slos=slos)).text()
    assert "13.96\n" in text
    assert "00000" not in text
    assert "99999" not in text


@pytest.mark.parametrize("days", [1, 2, 3, 7, 28, 30, 90])
def test_every_slo_window_has_a_page_and_a_ticket(days: int) -> None:
    fleet = Fleet(replicas=(), slos=Slos(window=timedelta(days=days)))
    for severity in (Severity.PAGE, Severity.TICKET):
        assert "model:llm_slo_burn:rate" in in_danger(AVAILABILITY, severity, fleet).text()
