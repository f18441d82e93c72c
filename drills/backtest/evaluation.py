"""Evaluation: when alerts fired, asked of a real Prometheus. In: scraped samples, questions, stretches. Out: `Fired`.

Two passes over the same moments. The first evaluates the recording rules that count good and all requests over each
window, from scraped counters; what it finds becomes blocks of a second Prometheus, which evaluates everything else.
There a sample counts at its own moment only: a recorded series is gone as soon as its rule finds nothing. Means over
the SLO window are thinned to one evaluation every five minutes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from pathlib import Path

import numpy as np

from drills.backtest.alert_states import replay
from drills.backtest.engine import Answer, Engine, Tools, backfill, serving
from drills.backtest.inline import Branch, Question, Rules
from drills.backtest.page import EPOCH
from drills.backtest.profiles import MONTH
from drills.backtest.resolution import THIN, Stretch
from drills.backtest.traffic import STEP
from prometheus.windows import TILE

__all__ = ["Exam", "Fired", "evaluated"]

_PART = MONTH
_FIRST_PASS = 0.6
"""The share of the time that the first pass takes."""

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """An alert that fired. Times are in seconds since the start of the backtest, the worst delay of rules included.

    `lag` is that delay: how much later than at once rules may see what was scraped.
    """

    alert: str
    severity: str
    slo: str
    pending: float
    firing: float
    resolved: float
    lag: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Exam:
    """What is asked, and when; `progress` is told of each further share of the work."""

    rules: Rules
    questions: Sequence[Question]
    spans: Sequence[Stretch]
    progress: Progress

    @property
    def branches(self) -> dict[str, tuple[Question, Branch]]:
        """Every query with the question it belongs to."""
        return {
            f"{q}.{b}": (question, branch)
            for q, question in enumerate(self.questions)
            for b, branch in enumerate(question.branches)
        }

    @property
    def moments(self) -> list[float]:
        """Every moment of evaluation, in Unix seconds."""
        found = [np.arange(EPOCH + span.start, EPOCH + span.end, _step(span)) for span in self.spans]
        return [float(moment) for moment in np.concatenate(found)]

    @property
    def parts(self) -> tuple["Exam", ...]:
        """The same in a few parts: promtool reads a text once per block of it, so one of a year takes too long."""
        by_part = groupby(self.spans, key=lambda span: span.start // _PART)
        return tuple(replace(self, spans=tuple(spans)) for _, spans in by_part)


@dataclass(slots=True)
class _Active:
    """The moments at which each series of a query was there, by the objective it is about."""

    by_slo: dict[str, set[float]] = field(default_factory=dict)


def evaluated(tools: Tools, scraped: Path, exam: Exam) -> tuple[Fired, ...]:
    """Return what fired within the spans, in the order of time; `scraped` is a data folder of scraped series."""
    branches = exam.branches
    active = {key: _Active() for key in branches}
    queries = {key: branch.query for key, (_, branch) in branches.items()}
    of_recorded = {key for key, query in queries.items() if any(name in query for name in exam.rules.kept)}
    recorded = scraped.with_name(f"{scraped.name}-recorded")
    with serving(tools.prometheus, scraped) as engine:
        _note(active, _asked(engine, {key: queries[key] for key in queries.keys() - of_recorded}, exam, 0))
        for part in exam.parts:
            backfill(tools.promtool, _recorded(engine, part, _FIRST_PASS / len(exam.parts)), recorded)
    with serving(tools.prometheus, recorded, lookback="1s") as engine:
        _note(active, _asked(engine, {key: queries[key] for key in of_recorded}, exam, 1 - _FIRST_PASS))
    moments = exam.moments
    fired = (_fired(*branches[key], active[key], moments) for key in branches)
    return _merged(sorted(chain.from_iterable(fired), key=lambda each: each.firing))


def _recorded(engine: Engine, exam: Exam, share: float) -> Iterator[str]:
    """Evaluate the recording rules that are kept, and write what they record as OpenMetrics text."""
    means = exam.rules.means
    rules = {name: exam.rules.recording(name) for name in exam.rules.kept - means}
    yield from _lines(_asked(engine, rules, exam, share))
    yield from _held(engine, {name: exam.rules.recording(name) for name in means}, exam)


def _merged(fired: Iterable[Fired]) -> tuple[Fired, ...]:
    """Join what fires for two reasons at once: to whoever is paged it is one alert."""
    last: dict[tuple[str, str, str], int] = {}
    found: list[Fired] = []
    for each in fired:
        key = (each.alert, each.severity, each.slo)
        at = last.get(key)
        if at is not None and each.firing <= found[at].resolved:
            found[at] = replace(found[at], resolved=max(found[at].resolved, each.resolved))
        else:
            last[key] = len(found)
            found.append(each)
    return tuple(found)


def _step(span: Stretch) -> int:
    return STEP if span.exact else THIN


def _asked(engine: Engine, queries: Mapping[str, str], exam: Exam, share: float) -> Iterator[Answer]:
    """Answer queries span by span, so that the samples of a series come in order; `share` is how much work this is."""
    for span in exam.spans:
        yield from engine.values(queries, EPOCH + span.start, EPOCH + span.end, _step(span))
        exam.progress(share / len(exam.spans))


def _held(engine: Engine, queries: Mapping[str, str], exam: Exam) -> Iterator[str]:
    """Evaluate what hardly changes once per tile, and write it for every moment of evaluation: it takes long."""
    moments = np.array(exam.moments)
    start, end = EPOCH + exam.spans[0].start, EPOCH + exam.spans[-1].end
    found: dict[str, tuple[Mapping[str, str], list[tuple[float, str]]]] = {}
    for answer in engine.values(queries, start, end, TILE.span.total_seconds()):
        found.setdefault(answer.key, (answer.labels, []))[1].extend(answer.samples)
    for key, (labels, samples) in found.items():
        at = np.searchsorted([moment for moment, _ in samples], moments, side="right") - 1
        shown = [(moment, samples[index][1]) for moment, index in zip(moments.tolist(), at, strict=True) if index >= 0]
        yield from _lines([Answer(key=key, labels=labels, samples=shown)])


def _note(active: Mapping[str, _Active], answers: Iterable[Answer]) -> None:
    for answer in answers:
        moments = active[answer.key].by_slo.setdefault(answer.labels.get("slo", ""), set())
        moments.update(float(moment) for moment, _ in answer.samples)


def _lines(answers: Iterable[Answer]) -> Iterator[str]:
    """Write the samples of recorded series as OpenMetrics text."""
    for answer in answers:
        labels = ",".join(f'{name}="{value}"' for name, value in answer.labels.items())
        yield "".join([f"{answer.key}{{{labels}}} {value} {moment}\n" for moment, value in answer.samples])


def _fired(question: Question, branch: Branch, active: _Active, moments: Sequence[float]) -> Iterator[Fired]:
    # What is scraped at the end of a step is asked for a step later: that wait is in `lag`, and does not count twice.
    late = branch.lag - STEP - EPOCH
    for slo, present in active.by_slo.items():
        for firing in replay(moments, present, question.delay, question.keep):
            yield Fired(
                alert=question.alert,
                severity=question.severity,
                slo=question.labels.get("slo", slo),
                pending=firing.pending + late,
                firing=firing.firing + late,
                resolved=(moments[-1] if firing.resolved is None else firing.resolved) + late,
                lag=branch.lag,
            )
