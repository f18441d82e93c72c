"""Budget alerts, in promtool: they fire when the budget is in danger, at the right minute, and stay quiet otherwise.

Every case is about all three indicators at once: the same requests are late, slow or failed.
"""

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from exporter.fleet import Fleet, Replica
from exporter.objectives import LatencyObjective, Objectives, RatioObjective, Slos
from running.tools import Tool
from tests.prometheus.promtool import Case, Expect, Rules, run, samples

MODEL = "org/a&b"
SLO_OF = {
    "LLMTimeToFirstTokenBudgetBurn": "ttft",
    "LLMInterTokenLatencyBudgetBurn": "itl",
    "LLMAvailabilityBudgetBurn": "availability",
}
HOUR = 120  # samples
MINUTE = 2
STAGES = ("indicators-5m", "indicators", "burn", "alerts-budget")

Phase = tuple[int, float | None, float | None]
"""Samples, good and bad requests per sample; None is a scrape that failed."""


def traffic(*phases: Phase, replica: str = "vllm-a", end: str = "") -> dict[str, str]:
    """Write the series of one replica for all three indicators."""
    target = f'model="{MODEL}",replica="{replica}",engine="vllm"'
    ttft, tpot = "llm_time_to_first_token_seconds", "llm_time_per_output_token_seconds"
    finished = f"llm_requests_finished_total{{{target}"
    good = samples(*((steps, good) for steps, good, _ in phases)) + end
    bad = samples(*((steps, bad) for steps, _, bad in phases)) + end
    both = samples(*((steps, None if good is None else good + (bad or 0)) for steps, good, bad in phases)) + end
    return {
        f'{ttft}_bucket{{{target},le="2.0"}}': good,
        f"{ttft}_count{{{target}}}": both,
        f'{tpot}_bucket{{{target},le="0.1"}}': good,
        f"{tpot}_count{{{target}}}": both,
        f'{finished},outcome="stop"}}': good,
        f'{finished},outcome="error"}}': bad,
    }


def case(claim: str, series: dict[str, str], *expect: Expect) -> Case:
    return Case(claim=claim, series=series, expect=expect, every="30s")


def _alerts(at: str, severity: str, names: Sequence[str]) -> Expect:
    expr = f'ALERTS{{alertname=~"LLM.*BudgetBurn",alertstate="firing",severity="{severity}"}}'
    common = f'ALERTS{{alertstate="firing",severity="{severity}",model="{MODEL}"'
    return Expect(at=at, expr=expr, samples={f'{common},alertname="{n}",slo="{SLO_OF[n]}"}}': 1 for n in names})


def pages(at: str) -> Expect:
    return _alerts(at, "page", list(SLO_OF))


def does_not_page(at: str) -> Expect:
    return _alerts(at, "page", [])


def brings_a_ticket(at: str) -> Expect:
    return _alerts(at, "ticket", list(SLO_OF))


def brings_no_ticket(at: str) -> Expect:
    return _alerts(at, "ticket", [])


def quiet(*moments: str) -> list[Expect]:
    return [expect for at in moments for expect in (does_not_page(at), brings_no_ticket(at))]


def fleet(objective: str) -> Fleet:
    share = Decimal(objective)
    default = Objectives(
        ttft=LatencyObjective(threshold=timedelta(seconds=2), objective=share),
        itl=LatencyObjective(threshold=timedelta(milliseconds=100), objective=share),
        availability=RatioObjective(objective=share),
    )
    replica = Replica(name="vllm-a", url="http://127.0.0.1:8000", model=MODEL)
    return Fleet(replicas=(replica,), slos=Slos(default=default))


# Minutes after which a complete failure pages, with hours of good traffic before: factor * (1 - objective) * 60,
# at most 48.
@pytest.mark.parametrize(
    ("objective", "before", "after"),
    [("0.5", 46, 51), ("0.9", 46, 51), ("0.95", 41, 46), ("0.99", 7, 11), ("0.999", 0, 4), ("0.9999", 0, 4)],
)
def test_a_complete_failure_pages_whatever_the_objective(
    promtools: Tool, tmp_path: Path, objective: str, before: int, after: int
) -> None:
    fails = case(
        "every request is bad after six good hours",
        traffic((6 * HOUR, 100, 0), (HOUR, 0, 100)),
        does_not_page(f"{360 + before}m"),
        pages(f"{360 + after}m"),
    )
    run(promtools, tmp_path, Rules(fleet=fleet(objective), stages=STAGES, evaluate="2m"), [fails])


def test_a_budget_of_half_a_percent_is_guarded(promtools: Tool, tmp_path: Path) -> None:
    cases = [
        case(
            "7.5 % bad requests burn 15 times too fast and page before the hour is over",
            traffic((6 * HOUR, 1000, 0), (2 * HOUR, 925, 75)),
            does_not_page("400m"),
            pages("422m"),
        ),
        case("3.2 % bad requests burn 6.4 times too fast and page", traffic((6 * HOUR, 968, 32)), pages("6h")),
        case(
            "2.8 % bad requests burn 5.6 times too fast: a ticket, and nobody is woken",
            traffic((6 * HOUR, 972, 28)),
            does_not_page("6h"),
            brings_a_ticket("6h"),
        ),
        case(
            "0.55 % bad requests burn 1.1 times too fast: a ticket",
            traffic((6 * HOUR, 99450, 550)),
            does_not_page("6h"),
            brings_a_ticket("6h"),
        ),
        case("0.45 % bad requests are what was promised", traffic((6 * HOUR, 99550, 450)), *quiet("1h", "3h", "6h")),
        case(
            "a page stops soon after the trouble does",
            traffic((6 * HOUR, 100, 0), (20 * MINUTE, 0, 100), (HOUR, 100, 0)),
            pages("379m"),
            does_not_page("414m"),
        ),
    ]
    run(promtools, tmp_path, Rules(fleet=fleet("0.995"), stages=STAGES, evaluate="2m"), cases)


NO_TRAFFIC = case("no request at all", traffic((3 * HOUR, 0, 0)), *quiet("5m", "1h", "3h"))
SPARSE: list[Phase] = [(3 * MINUTE, 0, 0), (1, 1, 0)] * 10
ONE_BAD = case(
    "one bad request in a quiet hour",
    traffic(*SPARSE * 2, (1, 0, 1), *SPARSE * 2),
    *quiet("69m", "72m", "75m", "90m", "120m"),
)
TWO_AN_HOUR = case(
    "two requests an hour, one of them bad",
    traffic(*[(HOUR // 2 - 1, 0, 0), (1, 1, 0), (HOUR // 2 - 1, 0, 0), (1, 0, 1)] * 7),
    *(does_not_page(f"{hour * 60 + 2}m") for hour in range(1, 7)),
)


@pytest.mark.parametrize("objective", ["0.9", "0.999"])
def test_little_traffic_pages_nobody(promtools: Tool, tmp_path: Path, objective: str) -> None:
    cases = [NO_TRAFFIC, ONE_BAD, TWO_AN_HOUR]
    run(promtools, tmp_path, Rules(fleet=fleet(objective), stages=STAGES, evaluate="1m"), cases)


def test_a_slow_trickle_of_mostly_bad_requests_pages(promtools: Tool, tmp_path: Path) -> None:
    trickle = case("half a request per second, 90 % bad", traffic((HOUR, 1.5, 13.5)), pages("1h"))
    run(promtools, tmp_path, Rules(fleet=fleet("0.9"), stages=STAGES, evaluate="2m"), [trickle])


def test_scrapes_restarts_and_replicas_come_and_go(promtools: Tool, tmp_path: Path) -> None:
    one_in_four_failed: list[Phase] = [(3, 0, 100), (1, None, None)]
    healthy = traffic((3 * HOUR, 100, 0))
    cases = [
        case(
            "one failed scrape in four hides nothing",
            traffic((6 * HOUR, 100, 0), *one_in_four_failed * (HOUR // 4)),
            does_not_page("361m"),
            pages("375m"),
        ),
        case(
            "a restarted replica counts from zero again, and that is no failure",
            {name: f"{text} {text}" for name, text in healthy.items()},
            *quiet("180m", "181m", "183m", "186m", "200m", "240m", "300m"),
        ),
        case(
            "a replica that is removed takes its requests along, and that is no failure",
            healthy | traffic((HOUR, 100, 0), replica="vllm-b", end=" stale"),
            *quiet("59m", "60m", "61m", "62m", "64m", "66m", "90m", "120m"),
        ),
        case(
            "the last replica is gone: there is nothing left to judge",
            traffic((HOUR, 0, 100), end=" stale"),
            pages("59m"),
            does_not_page("95m"),
        ),
        case(
            "counts that are no numbers",
            traffic((HOUR, float("nan"), float("nan"))),
            *quiet("30m", "1h"),
        ),
    ]
    run(promtools, tmp_path, Rules(fleet=fleet("0.99"), stages=STAGES, evaluate="2m"), cases)
