"""Run: one model through the backtest. In: a profile, a seed, months. Out: what had to happen, and what fired.

Every model has a Prometheus of its own, so that the data of one model only is on disk at a time.
"""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from alerts.catalogue import ALERTS
from alerts.objectives import usual
from alerts.render import artefacts as alert_files
from drills.backtest.engine import Tools, backfill
from drills.backtest.evaluation import Exam, Fired, evaluated
from drills.backtest.incidents import chores, incidents
from drills.backtest.inline import Question, Rules
from drills.backtest.page import Totals, lines
from drills.backtest.profiles import DAY, MONTH, SLOS, Profile
from drills.backtest.resolution import Stretch, kept, stretches
from drills.backtest.rivals import rivals
from drills.backtest.traffic import draw
from drills.backtest.truth import History, Verdict
from prometheus import windows
from prometheus.deployment import Deployment
from prometheus.indicators import COUNTED, INDICATORS
from prometheus.render import artefacts as prometheus_files

__all__ = ["WARM_UP", "Outcome", "questions", "rules_of", "run"]

WARM_UP = 3 * DAY
"""The longest window of an alert: before that much history is there, nothing is judged."""
_TRAFFIC = 0.2
"""The share of the time that drawing and storing traffic takes."""

Progress = Callable[[str, float], None]
"""What is being done, and how much of the model's work was done since the last time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One model: what had to happen, and what fired between `start` and `end`, in the order of time."""

    model: str
    verdicts: tuple[Verdict, ...]
    fired: tuple[Fired, ...]
    start: float
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """A month as drawn: its samples as text, what had to happen, and where every sample counts."""

    lines: Iterator[str]
    verdicts: tuple[Verdict, ...]
    stretches: tuple[Stretch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Past:
    """What one month hands over to the next: counters, and requests."""

    totals: Totals
    history: History


def run(profile: Profile, seed: int, months: int, tools: Tools, progress: Progress) -> Outcome:
    """Draw the months of a model, evaluate every alert over them, and judge the incidents."""
    rules = rules_of(profile)
    judged: list[Verdict] = []
    covering: list[Stretch] = []
    past = _Past(totals={}, history=History(profile))
    with tempfile.TemporaryDirectory(prefix="backtest-") as folder:
        data = Path(folder) / "scraped"
        for month in range(months):
            drawn = _drawn(profile, seed, month, past)
            judged += drawn.verdicts
            covering += drawn.stretches
            backfill(tools.promtool, drawn.lines, data)
            progress(f"{profile.model}: traffic", _TRAFFIC / months)
        exam = Exam(
            rules=rules,
            questions=tuple(questions(rules)),
            spans=tuple(span for stretch in covering for span in _after_warm_up(stretch)),
            progress=lambda share: progress(f"{profile.model}: alerts", share * (1 - _TRAFFIC)),
        )
        fired = evaluated(tools, data, exam)
    return Outcome(
        model=profile.model,
        verdicts=tuple(verdict for verdict in judged if verdict.incident.start >= WARM_UP),
        fired=fired,
        start=WARM_UP,
        end=months * MONTH,
    )


def rules_of(profile: Profile) -> Rules:
    """Generate the rules of one model as they are shipped; what engines count is kept, over every window, and means."""
    fleet, deployment = profile.fleet, Deployment()
    files = {**prometheus_files(fleet, deployment), **alert_files(fleet, deployment)}
    *shorter, budget = windows.over(fleet.slos.window)
    kept = {usual(indicator, budget).name for indicator in INDICATORS} | {
        recorded(window).name
        for window in (windows.NOW, *shorter)
        for indicator in COUNTED
        for recorded in (indicator.good, indicator.total)
    }
    return Rules((text for path, text in files.items() if "/rules/" in path), frozenset(kept))


def questions(rules: Rules) -> Iterator[Question]:
    """Yield the alerts whose series this traffic has, those about an objective and a model that is down; and rivals."""
    about_users = {alert.name for alert in ALERTS if alert.slo in SLOS}
    yield from rules.questions({*about_users, "LLMGoodputCollapse", "LLMModelDown"})
    yield from rivals(rules)


def _drawn(profile: Profile, seed: int, month: int, past: _Past) -> _Drawn:
    random = np.random.default_rng([seed, month, *profile.model.encode()])
    troubles = incidents(profile, month, random)
    ordinary = chores(month, random)
    drawn = draw(profile, month, troubles, ordinary, random)
    covering = stretches(month * MONTH, (month + 1) * MONTH, troubles, ordinary)
    return _Drawn(
        lines=lines(profile, drawn, kept(drawn.times, covering), past.totals),
        verdicts=past.history.verdicts(drawn, troubles),
        stretches=covering,
    )


def _after_warm_up(stretch: Stretch) -> Iterator[Stretch]:
    if stretch.end > WARM_UP:
        yield Stretch(start=max(stretch.start, WARM_UP), end=stretch.end, exact=stretch.exact)
