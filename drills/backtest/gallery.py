"""Gallery: an example of each incident shape, evaluated and drawn. In: a folder, a seed. Out: a PNG per shape."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from drills.backtest.engine import Tools, backfill
from drills.backtest.evaluation import Exam, Fired, evaluated
from drills.backtest.incidents import DOWN, SHAPES, Incident, Shape, incident
from drills.backtest.page import lines
from drills.backtest.plots import Scene, draw
from drills.backtest.profiles import DAY, PROFILES, Profile
from drills.backtest.resolution import Stretch, kept
from drills.backtest.run import questions, rules_of
from drills.backtest.traffic import STEP, Month, bad, total
from drills.backtest.traffic import draw as draw_traffic
from drills.backtest.truth import History

__all__ = ["gallery"]

_HOUR = 3600
_START = 4.0 * DAY + 13 * _HOUR
"""A Friday after noon, with some days of history."""
_MODEL = "chat-8b"
_SMOOTH = 60 // STEP
_POINTS = 500
_BLIP = 60


def gallery(folder: Path, seed: int, tools: Tools) -> Iterator[Path]:
    """Draw one picture after the other, yielding its path; the same seed gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    profile = PROFILES[_MODEL]
    for name in SHAPES:
        path = folder / f"{name.replace(' ', '-')}.png"
        draw(_scene(profile, name, seed, tools), path)
        yield path


def _scene(profile: Profile, shape: str, seed: int, tools: Tools) -> Scene:
    trouble, month = _telling(profile, SHAPES[shape], np.random.default_rng([seed, *shape.encode()]))
    span = _span(trouble)
    slo = "availability" if trouble.slo == DOWN else trouble.slo
    every = max(1, (span.end - span.start) // STEP // _POINTS)
    shown = slice(span.start // STEP, span.end // STEP, every)
    asked, missed = (of(month.counts, slo).astype(np.float64) for of in (total, bad))
    window = np.ones(_SMOOTH)
    recent, recently_bad = (np.convolve(each, window)[: len(each)] for each in (asked, missed))
    with np.errstate(invalid="ignore"):
        good = 1 - recently_bad / recent
    allowed = profile.budget(slo) * asked[: shown.start].mean() * 30 * DAY / STEP
    return Scene(
        incident=trouble,
        slo=slo,
        objective=float(profile.objective(slo)),
        at=month.times[shown],
        good=good[shown],
        left=(1 - np.cumsum(missed) / allowed)[shown],
        fired=_fired(profile, month, span, tools),
    )


def _telling(profile: Profile, shape: Shape, random: np.random.Generator) -> tuple[Incident, Month]:
    """Draw incidents of a shape until one has to bring a page or a ticket; of blips, which must not, take the first."""
    while True:
        trouble = incident(profile, shape, _START, random)
        month = draw_traffic(profile, 0, [trouble], [], random)
        (verdict,) = History(profile).verdicts(month, [trouble])
        if verdict.must_page or verdict.must_ticket or shape.seconds[1] <= _BLIP:
            return trouble, month


def _span(trouble: Incident) -> Stretch:
    around = max(1800.0, min(trouble.duration / 3, 6.0 * _HOUR))
    end = trouble.end + max(around, 2400.0)
    return Stretch(start=int(trouble.start - around) // 60 * 60, end=int(end) // 60 * 60, exact=True)


def _fired(profile: Profile, month: Month, span: Stretch, tools: Tools) -> tuple[Fired, ...]:
    rules = rules_of(profile)
    exam = Exam(rules=rules, questions=tuple(questions(rules)), spans=(span,), progress=lambda _: None)
    keep = kept(month.times, [span]) & (month.times < span.end)
    with tempfile.TemporaryDirectory(prefix="backtest-") as scratch:
        data = Path(scratch) / "scraped"
        backfill(tools.promtool, lines(profile, month, keep, {}), data)
        return evaluated(tools, data, exam)
