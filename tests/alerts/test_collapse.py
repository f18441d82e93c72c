"""LLMGoodputCollapse, in promtool: whatever the objective, most requests being bad pages within three minutes."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from exporter.fleet import Fleet, Replica
from exporter.objectives import Objectives, Slos
from exporter.thresholds import Thresholds, ThresholdTable
from running.tools import Tool
from tests.alerts.test_budget_alerts import fleet
from tests.alerts.traffic import MODEL, SLOS, joined, traffic
from tests.prometheus.promtool import Case, Expect, Rules, run

STAGES = ("indicators-1h", "now", "alerts-collapse")
HOUR = 360  # samples of 10 s
MINUTE = 6
DEFAULT = Fleet(replicas=(Replica(name="vllm-a", url="http://127.0.0.1:8000"),))


def pages(at: str, *slos: str, model: str = MODEL) -> Expect:
    series = 'ALERTS{alertname="LLMGoodputCollapse",alertstate="firing",severity="page"'
    return Expect(
        at=at,
        expr=f"{series}}}",
        samples={f'{series},model="{model}",slo="{slo}"}}': 1 for slo in slos},
    )


def burning(slo: str, severity: str) -> str:
    """Name the record of a budget alert that fires."""
    labels = f'alertstate="firing",model="{MODEL}",slo="{slo}",severity="{severity}"'
    return f'ALERTS{{alertname="LLMAnyBudgetBurn",{labels}}}'


@pytest.mark.parametrize("objective", ["0.5", "0.95", "0.9999"])
def test_every_request_being_bad_pages_within_three_minutes(promtools: Tool, tmp_path: Path, objective: str) -> None:
    """Alertmanager takes 5 s of them, and the rules wait for each other up to 30 s."""
    cases = [
        Case(
            claim=f"every request misses {slo} after a good hour",
            series=traffic((HOUR, 10, {}), (HOUR, 10, {slo: 10})),
            expect=[pages("60m55s"), pages("62m25s", slo)],
        )
        for slo in SLOS
    ]
    run(promtools, tmp_path, Rules(fleet=fleet(objective), stages=STAGES), cases)


CASES = [
    Case(
        claim="56 % of the requests are good: the budget burns, but most users are served",
        series=traffic((HOUR, 100, {"ttft": 44})),
        expect=[pages("10m"), pages("59m")],
    ),
    Case(
        claim="44 % of the requests are good: fewer than half of the 95 % promised",
        series=traffic((HOUR, 100, {"ttft": 56})),
        expect=[pages("59m", "ttft")],
    ),
    Case(
        claim="no request at all, or a request now and then that is bad, pages nobody",
        series=traffic((HOUR, 0, 0)) | traffic(*[(5, 0, 0), (1, 0, 1)] * 30, model="quiet", replica="b"),
        expect=[pages(f"{minute}m") for minute in (1, 5, 13, 29)],
    ),
    # Not a whole minute: of two minutes 2.x sees twelve increments and 3.x, which leaves out the left edge, eleven.
    Case(
        claim="fifty bad seconds are over before anybody could help",
        series=traffic((HOUR, 10, 0), (5, 0, 10), (HOUR, 10, 0)),
        expect=[pages(f"{minute}m") for minute in (60, 61, 62, 63, 64, 70)],
    ),
    Case(
        claim="trouble that comes and goes is one page, which is over five minutes after the last of it",
        series=traffic((30 * MINUTE, 10, 0), *[(3 * MINUTE, 0, 10), (3 * MINUTE, 10, 0)] * 3, (30 * MINUTE, 10, 0)),
        expect=[
            pages("29m"),
            *(pages(f"{minute}m", *SLOS) for minute in range(33, 50)),
            pages("55m"),
        ],
    ),
    Case(
        claim="one failed scrape in four hides nothing",
        series=traffic((HOUR, 10, 0), *[(3, 0, 10), (1, None, None)] * 30),
        expect=[pages("60m"), pages("63m", *SLOS)],
    ),
    Case(
        claim="a restart, and scrapes that fail, are no bad requests",
        series=joined(traffic(*[(3, 10, 0), (1, None, None)] * 30), traffic((30 * MINUTE, 10, 0), replica="vllm-a")),
        expect=[pages(f"{minute}m") for minute in range(15, 30)],
    ),
    Case(
        claim="a replica that is removed takes its bad requests along",
        series=traffic((HOUR, 10, 0)) | traffic((30 * MINUTE, 0, 30), replica="b", end=" stale"),
        expect=[pages("29m", *SLOS), pages("40m")],
    ),
    Case(
        claim="a budget that pages already says the same of its objective, and of no other",
        series=traffic((HOUR, 10, 0), (HOUR, 0, 10))
        | {burning("ttft", "page"): "_x360 1x360", burning("itl", "ticket"): "1x720"},
        expect=[pages("62m25s", "itl", "availability"), pages("119m", "itl", "availability")],
    ),
    Case(
        claim="a budget that pages later does not end it",
        series=traffic((HOUR, 10, 0), (HOUR, 0, 10)) | {burning("ttft", "page"): "_x480 1x240"},
        expect=[pages("79m", *SLOS), pages("119m", *SLOS)],
    ),
    Case(
        claim="another model is judged by itself",
        series=traffic((HOUR, 100, 0)) | traffic((HOUR, 0, 10), model="other", replica="b"),
        expect=[pages("30m", *SLOS, model="other")],
    ),
    Case(
        claim="counts that are no numbers",
        series=traffic((HOUR, float("nan"), float("nan"))),
        expect=[pages("30m")],
    ),
    Case(
        claim="an upgrade renames the version's label in the middle, and brings other bounds",
        series=traffic((HOUR, 10, {"ttft": 10}), replica="a", end=" stale")
        | {
            name.replace('replica="a"', 'replica="a",zone="b"'): f"{'_ ' * HOUR}{values}"
            for name, values in traffic((HOUR, 10, {"ttft": 10}), replica="a").items()
        },
        expect=[pages("59m", "ttft"), pages("61m", "ttft"), pages("63m", "ttft"), pages("80m", "ttft")],
    ),
]


def test_most_requests_being_bad_for_minutes_pages(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, Rules(fleet=DEFAULT, stages=STAGES), CASES)


def test_what_was_told_is_remembered_for_half_an_hour(promtools: Tool, tmp_path: Path) -> None:
    """Its longer windows make a burn rate speak when the collapse is over; nobody needs to hear that."""
    note = 'ALERTS{alertname="LLMGoodputCollapse",alertstate="firing",severity="note"'
    case = Case(
        claim="ten bad minutes, and half an hour after",
        series=traffic((HOUR, 10, 0), (10 * MINUTE, 10, {"itl": 10}), (HOUR, 10, 0)),
        expect=[
            Expect(at=at, expr=f"{note}}}", samples=dict.fromkeys(labels, 1.0))
            for at, labels in (
                ("60m", ()),
                ("65m", (f'{note},model="{MODEL}",slo="itl"}}',)),
                ("100m", (f'{note},model="{MODEL}",slo="itl"}}',)),
                ("110m", ()),
            )
        ],
    )
    run(promtools, tmp_path, Rules(fleet=DEFAULT, stages=STAGES), [case])


def test_a_model_can_have_a_threshold_of_its_own(promtools: Tool, tmp_path: Path) -> None:
    table = ThresholdTable(models={MODEL: Thresholds(collapse=Decimal("0.8"))})
    slos = Slos(models={"strict": Objectives()})
    case = Case(
        claim="70 % of the requests are good, 76 % are wanted of one model and 48 % of another",
        series=traffic((HOUR, 100, {"itl": 30})) | traffic((HOUR, 100, {"itl": 30}), model="strict", replica="b"),
        expect=[pages("59m", "itl")],
    )
    run(promtools, tmp_path, Rules(fleet=replace(DEFAULT, slos=slos, thresholds=table), stages=STAGES), [case])
