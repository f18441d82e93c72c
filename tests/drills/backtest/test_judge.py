"""Judge and report: which page belongs to which incident, and what is said about it."""

import numpy as np
import pytest

from drills.backtest.evaluation import Fired
from drills.backtest.incidents import Incident
from drills.backtest.judge import AFTERWARDS, Score, score
from drills.backtest.profiles import DAY
from drills.backtest.report import LEGEND, document, missed, tables
from drills.backtest.run import Outcome
from drills.backtest.truth import Spent, Verdict

START = 10.0 * DAY
OURS = "LLMAvailabilityBudgetBurn"


def verdict(*, deadline: float | None = START + 600, shape: str = "rejections", slo: str = "availability") -> Verdict:
    incident = Incident(model="m", shape=shape, slo=slo, start=START, duration=3600, size=0.5, period=600)
    return Verdict(
        incident=incident,
        spent={"availability": Spent(start=START, running=np.linspace(0, 0.06, 360))},
        deadline=deadline,
        must_ticket=deadline is not None,
        collapse=False,
        everything_bad=shape == "sudden total",
    )


def fired(after: float, *, lasts: float = 600, severity: str = "page", alert: str = OURS) -> Fired:
    at = START + after
    return Fired(alert=alert, severity=severity, slo="availability", pending=at, firing=at, resolved=at + lasts, lag=30)


def judged(*found: Fired, what: Verdict | None = None) -> Score:
    verdicts = (what or verdict(),)
    outcome = Outcome(model="m", verdicts=verdicts, fired=found, start=3 * DAY, end=33 * DAY)
    return score("ours", [outcome], {OURS, "LLMModelDown"})


@pytest.mark.parametrize(
    ("found", "minutes"), [([fired(1205)], 0), ([fired(905)], -5), ([fired(1805)], 10), ([], float("inf"))]
)
def test_a_page_about_slow_trouble_is_not_slow_if_little_was_spent_before(found: list[Fired], minutes: float) -> None:
    """Two percent are spent after 1210 s; the message leaves 5 s after the alert."""
    assert judged(*found).after.worst == pytest.approx(minutes)


@pytest.mark.parametrize(
    ("claim", "found", "late", "silent", "baseless"),
    [
        ("a page in time", [fired(300)], 0, 0, 0),
        ("a page after the deadline", [fired(700)], 1, 0, 0),
        ("a ticket alone", [fired(300, severity="ticket")], 1, 0, 0),
        ("silence", [], 1, 1, 0),
        ("a page that fired before and still does", [fired(-100)], 0, 0, 1),
        ("a page that was over before", [fired(-1000)], 1, 1, 1),
        ("a page soon afterwards is about it, and late", [fired(3600 + AFTERWARDS - 1)], 1, 0, 0),
        ("a page long afterwards is about nothing", [fired(3600 + AFTERWARDS + 1)], 1, 0, 1),
        ("somebody else's alert", [fired(300, alert="threshold for 5 minutes")], 1, 1, 0),
    ],
)
def test_a_page_is_judged_by_when_it_came(
    claim: str, found: list[Fired], late: int, silent: int, baseless: int
) -> None:
    result = judged(*found)
    assert (len(result.late), len(result.silent), len(result.baseless)) == (late, silent, baseless), claim


def test_a_page_for_what_need_not_page_has_no_cause() -> None:
    result = judged(fired(300), what=verdict(deadline=None))
    assert len(result.baseless) == 1
    assert result.precision == 0
    assert not result.must_page


def test_waiting_for_the_group_counts() -> None:
    (case,) = judged(fired(300)).cases
    assert case.paged == 305
    assert case.spent == pytest.approx(0.005, rel=0.05)


def test_every_figure_of_the_issue_is_held_against_the_score() -> None:
    assert missed(judged(fired(300))) == []
    (late,) = missed(judged(fired(700)))
    assert late.startswith("must page, came after 705 s")
    never, ticket = missed(judged())
    assert "came never" in never
    assert "brought none" in ticket
    many = [fired(offset * DAY) for offset in (2, 3, 4)]
    assert missed(judged(fired(300), *many))[0].startswith("3 pages without cause in 1.0 months")
    (down,) = missed(judged(fired(56, alert="LLMModelDown"), what=verdict(shape="model down", slo="down")))
    assert down == "model down: worst page after 61 s, at most 60 s"
    (slow,) = missed(judged(fired(176), what=verdict(shape="sudden total")))
    assert slow == "every request bad: worst page after 181 s, at most 180 s"


def test_tables_and_json_say_the_same() -> None:
    result = judged(fired(300))
    text = tables([result], [result])
    assert "incidents that must page" in text
    assert "1 (100.0%)" in text
    plain = document([result], [])["systems"]["ours"]
    assert (plain["must_page"], plain["late_or_never"], plain["pages"], plain["precision"]) == (1, 0, 1, 1.0)
    assert document([judged()], ["x"])["systems"]["ours"]["minutes_to_page"]["worst"] is None


def test_rows_are_explained_below_the_tables_and_nothing_else_is() -> None:
    result = judged(fired(300))
    rows, _, legend = tables([result], [result]).split("\n\n")
    assert [line[:34].strip() for line in legend.splitlines()] == list(LEGEND)
    labels = [line[:34].strip() for line in rows.splitlines()]
    assert [label for label in LEGEND if not any(row.startswith(label) for row in labels)] == []
    assert [row for row in labels if row and not row.startswith(tuple(LEGEND))] == [
        "too late / never",
        "ticket or page came",
    ]
    assert max(map(len, legend.splitlines())) < 140
