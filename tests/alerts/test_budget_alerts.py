"""Budget alerts, in promtool: they fire when the budget is in danger, at the right minute, and stay quiet otherwise.

Every case is about the three indicators that engines count at once: the same requests are late, slow or failed. What is
known of goodput follows from them.
"""

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from exporter.fleet import Fleet, Replica
from exporter.objectives import LatencyObjective, Objectives, RatioObjective, Slos
from running.tools import Tool
from tests.alerts.traffic import MODEL, Phase, joined, traffic
from tests.prometheus.promtool import Case, Expect, Rules, run

SLO_OF = {
    "LLMTimeToFirstTokenBudgetBurn": "ttft",
    "LLMInterTokenLatencyBudgetBurn": "itl",
    "LLMAvailabilityBudgetBurn": "availability",
}
MONTH = timedelta(days=30)
HOUR = 120  # samples
MINUTE = 2
STAGES = ("indicators-1h", "indicators", "burn", "alerts-budget")


def case(claim: str, series: dict[str, str], *expect: Expect) -> Case:
    return Case(claim=claim, series=series, expect=expect, every="30s")


def _alerts(at: str, severity: str, names: Sequence[str]) -> Expect:
    expr = f'ALERTS{{alertname=~"LLM.*BudgetBurn",slo!="goodput",alertstate="firing",severity="{severity}"}}'
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


def fleet(objective: str, window: timedelta = MONTH) -> Fleet:
    share = Decimal(objective)
    default = Objectives(
        ttft=LatencyObjective(threshold=timedelta(seconds=2), objective=share),
        itl=LatencyObjective(threshold=timedelta(milliseconds=100), objective=share),
        availability=RatioObjective(objective=share),
        goodput=RatioObjective(objective=share),
    )
    replica = Replica(name="vllm-a", url="http://127.0.0.1:8000", model=MODEL)
    return Fleet(replicas=(replica,), slos=Slos(window=window, default=default))


# Minutes after which a complete failure pages, with hours of good traffic before: 0.97 * factor * (1 - objective) * 60,
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
            "2.8 % bad requests burn 5.6 times too fast: nobody is woken, and after six hours a tenth is not spent yet",
            traffic((6 * HOUR, 972, 28)),
            *quiet("3h", "6h"),
        ),
        case("0.45 % bad requests are what was promised", traffic((6 * HOUR, 99550, 450)), *quiet("1h", "3h", "6h")),
        case(
            "a page stops soon after the trouble does",
            traffic((6 * HOUR, 100, 0), (20 * MINUTE, 0, 100), (HOUR, 100, 0)),
            pages("379m"),
            does_not_page("420m"),
        ),
        case(
            "what was promised wakes nobody after trouble that six hours remember",
            traffic((6 * HOUR, 1000, 0), (20 * MINUTE, 0, 1000), (2 * HOUR, 995, 5)),
            pages("379m"),
            does_not_page("470m"),
        ),
    ]
    run(promtools, tmp_path, Rules(fleet=fleet("0.995"), stages=STAGES, evaluate="2m"), cases)


@pytest.mark.parametrize("days", [1, 7])
def test_a_short_window_wakes_nobody_at_the_promised_pace(promtools: Tool, tmp_path: Path, days: int) -> None:
    cases = [
        case(
            "bad requests come 1.4 times as often as promised, for six hours",
            traffic((6 * HOUR, 993, 7)),
            *(does_not_page(f"{hour}h") for hour in range(1, 7)),
        ),
        case(
            "four times as often pages within the hour in which it begins",
            traffic((6 * HOUR, 995, 5), (HOUR, 980, 20)),
            does_not_page("6h"),
            pages("419m"),
        ),
        case("every request is bad", traffic((6 * HOUR, 100, 0), (HOUR, 0, 100)), pages("370m")),
    ]
    rules = Rules(fleet=fleet("0.995", timedelta(days=days)), stages=STAGES, evaluate="2m")
    run(promtools, tmp_path, rules, cases)


LONG_WINDOWS = ("2h", "6h", "1d", "3d")
OF_TICKETS = ("indicators-1h", "burn-usual", *(f"{of}-{w}" for of in ("indicators", "burn") for w in LONG_WINDOWS))


@pytest.mark.parametrize(
    ("bad", "hours", "before", "after"),
    [(26, 15, "13h", "14h"), (6, 72, "57h", "60h")],
    ids=["5.2 times too fast", "1.2 times too fast"],
)
def test_a_ticket_comes_when_a_tenth_of_the_budget_is_spent(  # noqa: PLR0913, PLR0917 - two moments of a case
    promtools: Tool, tmp_path: Path, bad: int, hours: int, before: str, after: str
) -> None:
    slow = Case(
        claim=f"{bad} of 1000 requests are bad, at an objective of 99.5 %",
        series=traffic((hours * 30, 1000 - bad, bad)),
        expect=(brings_no_ticket(before), brings_a_ticket(after), does_not_page(after)),
        every="2m",
    )
    run(promtools, tmp_path, Rules(fleet=fleet("0.995"), stages=(*OF_TICKETS, "alerts-budget"), evaluate="5m"), [slow])


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
            does_not_page("100m"),
        ),
        case(
            "counts that are no numbers",
            traffic((HOUR, float("nan"), float("nan"))),
            *quiet("30m", "1h"),
        ),
    ]
    run(promtools, tmp_path, Rules(fleet=fleet("0.99"), stages=STAGES, evaluate="2m"), cases)


def goodput(at: str, severity: str, *, fires: bool) -> Expect:
    series = f'ALERTS{{alertname="LLMGoodputBudgetBurn",alertstate="firing",severity="{severity}"'
    return Expect(at=at, expr=f"{series}}}", samples={f'{series},model="{MODEL}",slo="goodput"}}': 1} if fires else {})


def test_goodput_is_in_danger_when_no_single_objective_is(promtools: Tool, tmp_path: Path) -> None:
    """At 90 % a burn of 6 is 60 % bad requests; the misses of three objectives add up to that, at most."""
    misses = {"ttft": 25, "itl": 25, "availability": 15}
    cases = [
        case(
            "25 % late, 25 % slow and 15 % failed requests may be 65 % that met no promise",
            traffic((7 * HOUR, 100, misses)),
            does_not_page("7h"),
            goodput("7h", "page", fires=True),
        ),
        case(
            "5 % less in each, and nobody is woken",
            traffic((7 * HOUR, 100, {slo: share - 5 for slo, share in misses.items()})),
            does_not_page("7h"),
            goodput("7h", "page", fires=False),
        ),
        case(
            "an engine that counts outcomes alone has no goodput",
            traffic((7 * HOUR, 100, {"availability": 90}), slos=("availability",)),
            goodput("7h", "page", fires=False),
            goodput("7h", "ticket", fires=False),
        ),
        case("no requests, no goodput", traffic((7 * HOUR, 0, 0)), goodput("7h", "page", fires=False)),
        case(
            "one failed scrape in four, and a restart, hide nothing and invent nothing",
            joined(
                traffic(*[(3, 100, misses), (1, None, None)] * (HOUR * 7 // 8)),
                traffic(*[(3, 100, misses), (1, None, None)] * (HOUR * 7 // 8)),
            ),
            goodput("415m", "page", fires=True),
        ),
    ]
    run(promtools, tmp_path, Rules(fleet=fleet("0.9"), stages=STAGES, evaluate="2m"), cases)


def test_a_budget_is_gone_when_what_is_left_burns_at_the_pace_of_the_last_hour(promtools: Tool, tmp_path: Path) -> None:
    def left(at: str, slo: str, *samples: float) -> Expect:
        name = "model:llm_slo_budget_exhaustion:seconds"
        labels = f'model="{MODEL}",slo="{slo}"'
        return Expect(
            at=at,
            expr=f'round({name}{{slo="{slo}"}} / 3600)',
            samples={f"{{{labels}}}": value for value in samples},
        )

    cases = [
        case(
            "5 % bad of 10 % allowed: burn 0.5, half of the budget left, which lasts 30 days",
            traffic((2 * HOUR, 95, 5)),
            left("2h", "ttft", 720),
        ),
        case("all bad: nothing is left", traffic((2 * HOUR, 0, 100)), left("2h", "ttft", 0)),
        case("all good: it does not burn", traffic((2 * HOUR, 100, 0)), left("2h", "availability")),
    ]
    run(promtools, tmp_path, Rules(fleet=fleet("0.9"), stages=(*STAGES, "budget"), evaluate="2m"), cases)
