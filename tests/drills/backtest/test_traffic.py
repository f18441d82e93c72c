"""Traffic and truth: what is drawn is what is labelled."""

from itertools import pairwise

import numpy as np
import pytest

from drills.backtest.incidents import SHAPES, Chore, ChoreKind, Incident, chores, incident, incidents
from drills.backtest.page import EPOCH, SCRAPE_PHASE, lines
from drills.backtest.profiles import DAY, MONTH, PROFILES, SLOS, busyness
from drills.backtest.resolution import Stretch, kept, stretches
from drills.backtest.traffic import STEP, Month, bad, draw, total
from drills.backtest.truth import SOONEST, History, Spent

CHAT = PROFILES["chat-8b"]


def random(seed: int = 11) -> np.random.Generator:
    return np.random.default_rng(seed)


def made(shape: str, *, slo: str, start: float, minutes: float, size: float) -> Incident:
    return Incident(model=CHAT.model, shape=shape, slo=slo, start=start, duration=minutes * 60, size=size, period=600)


def month_of(*troubles: Incident, chores: tuple[Chore, ...] = ()) -> Month:
    return draw(CHAT, 0, troubles, chores, random())


NOON = 4 * DAY + DAY / 2


def test_the_same_seed_draws_the_same_month() -> None:
    first, second = (incidents(CHAT, 0, random()) for _ in range(2))
    assert first == second
    assert incidents(CHAT, 0, random(12)) != first


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_incidents_lie_within_their_month_and_apart(seed: int) -> None:
    found = incidents(CHAT, 2, random(seed))
    edges = [2 * MONTH, *(edge for each in found for edge in (each.start, each.end)), 3 * MONTH]
    assert edges == sorted(edges)
    assert all(later.start - earlier.end >= 8 * 3600 for earlier, later in pairwise(found))


@pytest.mark.parametrize("shape", SHAPES)
def test_no_shape_spoils_more_than_every_request(shape: str) -> None:
    for profile in PROFILES.values():
        drawn = incident(profile, SHAPES[shape], 0.0, random())
        share = drawn.bad_share(np.arange(-100, drawn.end + 100, 5))
        assert 0 < share.max() <= 1
        assert share[0] == share[-1] == 0


def test_every_objective_lies_between_90_and_99_point_9_percent() -> None:
    budgets = [profile.budget(slo) for profile in PROFILES.values() for slo in SLOS]
    assert (round(min(budgets), 9), round(max(budgets), 9)) == (0.001, 0.1)


def test_nights_and_weekends_are_quieter() -> None:
    afternoon, night = busyness(CHAT, np.array([16 * 3600.0, 4 * 3600.0]))
    saturday = busyness(CHAT, np.array([5 * DAY + 16 * 3600.0]))[0]
    assert night < saturday < afternoon == pytest.approx(CHAT.peak)


def test_an_incident_spoils_the_requests_it_is_about_and_no_others() -> None:
    month = month_of(made("sudden total", slo="ttft", start=NOON, minutes=10, size=1))
    during = slice(int(NOON) // STEP, int(NOON + 600) // STEP)
    share = {slo: bad(month.counts, slo)[during].sum() / total(month.counts, slo)[during].sum() for slo in SLOS}
    assert share["ttft"] == 1
    assert share["goodput"] > 0.99
    assert max(share["itl"], share["availability"]) < 0.02


def test_one_replica_of_many_spoils_its_own_share() -> None:
    month = month_of(made("one replica of many", slo="itl", start=NOON, minutes=60, size=1))
    during = slice(int(NOON) // STEP, int(NOON + 3600) // STEP)
    assert bad(month.counts, "itl")[during].sum() / total(month.counts, "itl")[during].sum() == pytest.approx(
        1 / CHAT.replicas, rel=0.1
    )


def test_nobody_answers_while_a_model_is_down() -> None:
    month = month_of(made("model down", slo="down", start=NOON, minutes=10, size=1))
    during = slice(int(NOON) // STEP, int(NOON + 600) // STEP)
    assert total(month.counts, "availability")[during].sum() == 0
    assert not month.ready[:, during].any()
    assert month.ready[:, during.stop].all()


def test_a_restarted_replica_counts_from_zero_and_shows_nothing_while_away() -> None:
    restart = Chore(kind=ChoreKind.RESTART, member=0, start=NOON, duration=60)
    month = month_of(chores=(restart,))
    text = "".join(lines(CHAT, month, np.ones(MONTH // STEP, bool), {})).splitlines()
    rows = [line.split() for line in text if 'stop"' in line and 'replica="a"' in line]
    at = [float(stamp) - EPOCH for _, _, stamp in rows]
    values = [int(value) for _, value, _ in rows]
    (fall,) = [index for index in range(1, len(values)) if values[index] < values[index - 1]]
    assert at[fall - 1] < NOON + STEP
    assert 60 < at[fall] - at[fall - 1] <= 90
    assert values[fall] < values[fall - 1] / 100
    states = [line.split() for line in text if line.startswith("llm_replica_state") and 'replica="a"' in line]
    assert [float(stamp) - EPOCH < NOON + 80 for _, value, stamp in states if value == "0"] == [True] * 6


def test_counters_go_on_from_month_to_month() -> None:
    totals: dict[str, int] = {}
    first, second = (draw(CHAT, month, (), (), random()) for month in (0, 1))
    few = np.zeros(MONTH // STEP, bool)
    few[-1] = True
    last = "".join(lines(CHAT, first, few, totals))
    few[:] = False
    few[0] = True
    after = "".join(lines(CHAT, second, few, totals))
    before, then = (
        {row.split()[0]: int(row.split()[1]) for row in text.splitlines() if "_total{" in row} for text in (last, after)
    )
    assert before.keys() == then.keys()
    assert all(0 <= then[series] - before[series] < 1000 for series in before)


def test_a_lost_scrape_leaves_no_sample() -> None:
    lost = Chore(kind=ChoreKind.LOST_SCRAPES, member=1, start=NOON, duration=20)
    month = month_of(chores=(lost,))
    text = "".join(lines(CHAT, month, np.ones(MONTH // STEP, bool), {}))
    counted = {name: text.count(f'replica="{name}",state="ready"') for name in "ab"}
    assert counted == {"a": MONTH // STEP, "b": MONTH // STEP - 2}


def test_what_spends_two_percent_in_an_hour_must_page_before_three_are_spent() -> None:
    trouble = made("slow first token", slo="ttft", start=NOON, minutes=120, size=0.3)
    (verdict,) = History(CHAT).verdicts(month_of(trouble), [trouble])
    spent = verdict.spent["ttft"]
    assert verdict.deadline is not None
    assert spent.until(verdict.deadline) == pytest.approx(0.03, rel=0.05)
    assert verdict.must_ticket
    assert not verdict.collapse


def test_what_spends_less_may_stay_quiet() -> None:
    trouble = made("slow first token", slo="ttft", start=NOON, minutes=30, size=0.1)
    (verdict,) = History(CHAT).verdicts(month_of(trouble), [trouble])
    assert (verdict.must_page, verdict.must_ticket, verdict.may_page) == (False, False, False)


def test_nobody_is_told_sooner_than_complete_failure_is_known() -> None:
    trouble = made("sudden total", slo="availability", start=NOON, minutes=5, size=1)
    (verdict,) = History(CHAT).verdicts(month_of(trouble), [trouble])
    assert verdict.deadline == NOON + SOONEST
    assert verdict.everything_bad


def test_a_share_is_reached_within_its_span_only() -> None:
    slow = Spent(start=0, running=np.linspace(0.0001, 0.1, 1000))
    assert slow.reached(600, 0.02) is None
    assert slow.reached(3600, 0.02) == 200 * STEP
    assert slow.whole == pytest.approx(0.1)


def test_stretches_cover_the_span_and_keep_incidents_exact() -> None:
    trouble = made("slow ramp", slo="ttft", start=NOON, minutes=400, size=0.3)
    found = stretches(0, MONTH, [trouble], chores(0, random()))
    assert found[0].start == 0
    assert found[-1].end == MONTH
    assert all(left.end == right.start for left, right in pairwise(found))
    for moment in (NOON - 300, NOON, NOON + 3600, trouble.end, trouble.end + 1200):
        assert next(each.exact for each in found if each.start <= moment < each.end), moment


def test_a_thinned_stretch_keeps_the_scrapes_before_and_after_each_evaluation() -> None:
    times = np.arange(0, 4200, STEP, dtype=np.float64)
    keep = kept(times, [Stretch(start=0, end=3900, exact=False), Stretch(start=3900, end=4200, exact=True)])
    assert (times[keep][:6] + STEP + SCRAPE_PHASE).tolist() == [93.7, 103.7, 193.7, 203.7, 293.7, 303.7]
    assert keep[30:].all(), "exact, and the hour before it"
