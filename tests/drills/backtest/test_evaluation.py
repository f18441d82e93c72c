"""Evaluation: what the backtest asks of Prometheus is what its rule manager would say, and thinning is harmless.

One version of the tools suffices here, the newest: the rules' results are compared between versions elsewhere.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from drills.backtest.command import newest
from drills.backtest.engine import Tools, backfill, serving
from drills.backtest.evaluation import Exam, Fired, evaluated
from drills.backtest.incidents import Chore, ChoreKind, Incident
from drills.backtest.page import EPOCH, lines
from drills.backtest.profiles import DAY, PROFILES
from drills.backtest.resolution import THIN, Stretch, kept, stretches
from drills.backtest.run import questions, rules_of
from drills.backtest.traffic import STEP, draw
from tests.prometheus.promtool import Case, Expect, Rules, run, samples

CHAT = PROFILES["chat-8b"]
WINDOWS = ("2m", "5m", "30m", "1h", "6h")
STAGES = (
    "indicators-1h",
    "burn-usual",
    *(f"{stage}-{window}" for stage in ("indicators", "burn") for window in WINDOWS),
    "now",
    "alerts-budget",
    "alerts-collapse",
)
HOUR = 3600


@pytest.fixture(scope="module")
def tools() -> Tools:
    return Tools(prometheus=newest("prometheus"), promtool=newest("promtool"))


def exam(*spans: Stretch) -> Exam:
    rules = rules_of(CHAT)
    return Exam(rules=rules, questions=tuple(questions(rules)), spans=spans, progress=lambda _: None)


def incident(shape: str, slo: str, start: float, minutes: float, size: float) -> Incident:
    return Incident(model=CHAT.model, shape=shape, slo=slo, start=start, duration=60 * minutes, size=size, period=900.0)


TROUBLES = (
    incident("slow first token", "ttft", DAY + 2 * HOUR, 50, 0.4),
    incident("model down", "down", DAY + 10 * HOUR, 7, 1.0),
    incident("slow ramp", "itl", DAY + 20 * HOUR, 300, 0.9),
    incident("sudden total", "availability", 2 * DAY + 12 * HOUR, 20, 1.0),
)
CHORES = (
    Chore(kind=ChoreKind.RESTART, member=1, start=DAY + 6 * HOUR, duration=90),
    Chore(kind=ChoreKind.LOST_SCRAPES, member=0, start=DAY + 15 * HOUR, duration=60),
)
SPAN = Stretch(start=DAY, end=3 * DAY, exact=True)


def fired(tools: Tools, folder: Path, covering: tuple[Stretch, ...]) -> tuple[Fired, ...]:
    random = np.random.default_rng(11)
    month = draw(CHAT, 0, TROUBLES, CHORES, random)
    keep = kept(month.times, covering) & (month.times < SPAN.end)
    backfill(tools.promtool, lines(CHAT, month, keep, {}), folder)
    return evaluated(tools, folder, exam(*(each for each in covering if each.start >= SPAN.start)))


def starts(found: Iterable[Fired]) -> dict[tuple[str, str, str], list[float]]:
    by_alert: dict[tuple[str, str, str], list[float]] = {}
    for each in found:
        by_alert.setdefault((each.alert, each.severity, each.slo), []).append(each.firing)
    return by_alert


@pytest.mark.parametrize("model", ["api-70b", "lab-3b"])
def test_thinned_scrapes_give_the_rates_of_all_scrapes_however_rare_requests_are(
    tools: Tools, tmp_path: Path, model: str
) -> None:
    month = draw(PROFILES[model], 0, (), (), np.random.default_rng(12))
    rules = rules_of(PROFILES[model])
    asked = {
        f"{slo}:{window}": rules.recording(f"model:llm_{slo}_{which}:rate{window}")
        for slo, which in (("ttft", "good"), ("availability", "total"))
        for window in ("5m", "30m", "1h", "6h")
    }
    answers = []
    for exact in (True, False):
        keep = kept(month.times, [Stretch(start=0, end=DAY, exact=exact)]) & (month.times < DAY)
        data = tmp_path / str(exact)
        backfill(tools.promtool, lines(PROFILES[model], month, keep, {}), data)
        with serving(tools.prometheus, data) as engine:
            found = engine.values(asked, EPOCH + 8 * HOUR, EPOCH + 14 * HOUR, THIN)
            answers.append({each.key: [float(value) for _, value in each.samples] for each in found})
    whole, thinned = answers
    assert whole.keys() == asked.keys()
    for key, values in whole.items():
        assert thinned[key] == pytest.approx(values, rel=1e-6), key


def test_thinning_changes_no_page(tools: Tools, tmp_path: Path) -> None:
    thinned = stretches(SPAN.start, SPAN.end, TROUBLES, CHORES)
    assert sum(each.end - each.start for each in thinned if each.exact) < (SPAN.end - SPAN.start) / 3
    whole, few = (fired(tools, tmp_path / name, spans) for name, spans in (("whole", (SPAN,)), ("thinned", thinned)))
    pages, fewer = ([each for each in found if each.severity == "page"] for found in (whole, few))
    assert {each.alert for each in pages} >= {"LLMModelDown", "LLMGoodputCollapse", "LLMTimeToFirstTokenBudgetBurn"}
    assert starts(fewer).keys() == starts(pages).keys()
    for alert, moments in starts(pages).items():
        assert starts(fewer)[alert] == pytest.approx(moments, abs=300), alert
    tickets, fewer_tickets = (starts(each for each in found if each.severity == "ticket") for found in (whole, few))
    assert fewer_tickets.keys() == tickets.keys()


def test_alerts_fire_when_the_rule_manager_says_so(tools: Tools, tmp_path: Path) -> None:
    good, bad = samples((360, 100), (90, 40), (240, 100)), samples((360, 0), (90, 60), (240, 0))
    both = samples((690, 100))
    of = f'model="{CHAT.model}",replica="a",engine="vllm"'
    finished = f"llm_requests_finished_total{{{of}"
    series = {
        f'llm_time_to_first_token_seconds_bucket{{{of},le="2.0"}}': good,
        f"llm_time_to_first_token_seconds_count{{{of}}}": both,
        f'llm_time_per_output_token_seconds_bucket{{{of},le="0.1"}}': both,
        f"llm_time_per_output_token_seconds_count{{{of}}}": both,
        f'{finished},outcome="stop"}}': good,
        f'{finished},outcome="error"}}': bad,
    }
    backfill(tools.promtool, _page(series), tmp_path / "data")
    pages = [
        each
        for each in evaluated(tools, tmp_path / "data", exam(Stretch(start=0, end=6900, exact=True)))
        if each.severity == "page" and each.alert.endswith("BudgetBurn")
    ]
    assert {each.slo for each in pages} == {"availability", "ttft", "goodput"}
    _agrees(tools, tmp_path, series, pages)


def _page(series: dict[str, str]) -> Iterable[str]:
    for name, values in series.items():
        for index, value in enumerate(values.split()):
            yield f"{name} {value} {EPOCH + index * 10}\n"


def _agrees(tools: Tools, folder: Path, series: dict[str, str], pages: Iterable[Fired]) -> None:
    """Let promtool's rule manager say when each alert begins to fire."""
    first: dict[tuple[str, str], float] = {}
    for page in pages:
        first.setdefault((page.alert, page.slo), page.firing - page.lag + STEP)
    expect = [
        Expect(at=f"{moment:.0f}s", expr=f"ALERTS{_labels(*alert)}", samples=_firing(*alert) if there else {})
        for alert, begin in first.items()
        for moment, there in ((begin - 10, False), (begin, True))
    ]
    case = Case(claim="as the backtest has it", series=series, expect=expect)
    run(tools.promtool, folder, Rules(fleet=CHAT.fleet, stages=STAGES), [case])


def _labels(alert: str, slo: str) -> str:
    about = f',slo="{slo}"' if slo else ""
    return f'{{alertname="{alert}",alertstate="firing",severity="page",model="{CHAT.model}"{about}}}'


def _firing(alert: str, slo: str) -> dict[str, float]:
    return {f"ALERTS{_labels(alert, slo)}": 1}
