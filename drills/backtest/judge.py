"""Judge: which page belongs to which incident. In: outcomes of models, a set of alerts. Out: `Score`.

A page belongs to the incident during which it came, or that ended at most `AFTERWARDS` before. Times count until the
message leaves Alertmanager, which waits some seconds for others of its group.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from alerts.model import Severity
from drills.backtest.evaluation import Fired
from drills.backtest.incidents import DOWN
from drills.backtest.profiles import DAY, MONTH
from drills.backtest.run import Outcome
from drills.backtest.truth import Verdict

__all__ = ["AFTERWARDS", "Case", "Score", "Spread", "score"]

AFTERWARDS = 600.0
"""Seconds after an incident in which a page is still about it."""
_TICKET_AFTERWARDS = DAY / 4
_QUIET_AFTER = DAY / 4
_GROUP_WAIT = 5.0
_WEEK = 7 * DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An incident and when it was first paged, in seconds from its start; None if it never was."""

    verdict: Verdict
    paged: float | None
    ticketed: bool

    @property
    def in_time(self) -> bool:
        """Whether what must page did before half as much again was spent."""
        start, deadline = self.verdict.incident.start, self.verdict.deadline
        return self.paged is not None and (deadline is None or start + self.paged <= deadline)

    @property
    def after(self) -> float | None:
        """Seconds from when the page was due to when it came, negative if sooner; None if no budget made it due."""
        due = self.verdict.reached
        if due is None:
            return None
        return float("inf") if self.paged is None else self.verdict.incident.start + self.paged - due

    @property
    def spent(self) -> float:
        """The share of the budget that suffers most, spent until the page; all of it if there was none."""
        incident = self.verdict.incident
        return self.verdict.worst(incident.end if self.paged is None else incident.start + self.paged)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Median and worst of some values; of none, nothing."""

    count: int
    median: float | None
    worst: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Summarise values; infinity stands for never."""
        return cls(count=len(values), median=median(values) if values else None, worst=max(values, default=None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How a set of alerts did."""

    name: str
    cases: tuple[Case, ...]
    pages: int
    baseless: tuple[tuple[str, Fired], ...]
    quiet_pages: int
    quiet_weeks: float
    months: float

    @property
    def must_page(self) -> tuple[Case, ...]:
        """The incidents that must page."""
        return tuple(case for case in self.cases if case.verdict.must_page)

    @property
    def late(self) -> tuple[Case, ...]:
        """Those that must page, and did not or too late."""
        return tuple(case for case in self.must_page if not case.in_time)

    @property
    def must_ticket(self) -> tuple[Case, ...]:
        """The incidents that must bring at least a ticket."""
        return tuple(case for case in self.cases if case.verdict.must_ticket)

    @property
    def silent(self) -> tuple[Case, ...]:
        """Those that must bring a ticket, and did not."""
        return tuple(case for case in self.must_ticket if not case.ticketed)

    @property
    def precision(self) -> float | None:
        """The share of pages with something behind them that warrants a page."""
        return 1 - len(self.baseless) / self.pages if self.pages else None

    def minutes(self, belongs: Callable[[Verdict], bool]) -> Spread:
        """Summarise the minutes from an incident's start to its page."""
        chosen = [case for case in self.cases if belongs(case.verdict)]
        return Spread.of([float("inf") if case.paged is None else case.paged / 60 for case in chosen])

    @property
    def after(self) -> Spread:
        """Summarise the minutes from when enough was spent to the page, of incidents that must page."""
        return Spread.of([case.after / 60 for case in self.must_page if case.after is not None])

    @property
    def spent(self) -> Spread:
        """Summarise the share of the budget spent until the page, of incidents that must page."""
        return Spread.of([case.spent for case in self.must_page if case.verdict.incident.slo != DOWN])


def score(name: str, outcomes: Iterable[Outcome], alerts: Collection[str]) -> Score:
    """Judge the alerts chosen by name over all models."""
    outcomes = tuple(outcomes)
    cases: list[Case] = []
    pages = 0
    baseless: list[tuple[str, Fired]] = []
    quiet_pages, quiet_seconds = 0, 0.0
    for outcome in outcomes:
        fired = [each for each in outcome.fired if each.alert in alerts]
        paging = [each for each in fired if each.severity == Severity.PAGE.value]
        cases += (_case(verdict, fired, paging) for verdict in outcome.verdicts)
        pages += len(paging)
        baseless += ((outcome.model, page) for page in paging if not _warranted(page, outcome.verdicts))
        quiet_pages += sum(not _near(page, outcome.verdicts, _QUIET_AFTER) for page in paging)
        busy = sum(verdict.incident.duration + _QUIET_AFTER for verdict in outcome.verdicts)
        quiet_seconds += outcome.end - outcome.start - busy
    return Score(
        name=name,
        cases=tuple(cases),
        pages=pages,
        baseless=tuple(baseless),
        quiet_pages=quiet_pages,
        quiet_weeks=quiet_seconds / _WEEK / max(1, len(outcomes)),
        months=max((outcome.end - outcome.start for outcome in outcomes), default=0.0) / MONTH,
    )


def _case(verdict: Verdict, fired: Iterable[Fired], paging: Iterable[Fired]) -> Case:
    pages = [each for each in paging if _during(each, verdict, AFTERWARDS)]
    first = min((each.firing for each in pages), default=None)
    return Case(
        verdict=verdict,
        paged=None if first is None else max(0.0, first - verdict.incident.start) + _GROUP_WAIT,
        ticketed=any(_during(each, verdict, _TICKET_AFTERWARDS) for each in fired),
    )


def _during(fired: Fired, verdict: Verdict, afterwards: float) -> bool:
    return fired.firing <= verdict.incident.end + afterwards and fired.resolved > verdict.incident.start


def _near(page: Fired, verdicts: Iterable[Verdict], afterwards: float) -> bool:
    return any(each.incident.start <= page.firing <= each.incident.end + afterwards for each in verdicts)


def _warranted(page: Fired, verdicts: Iterable[Verdict]) -> bool:
    return _near(page, (verdict for verdict in verdicts if verdict.may_page), AFTERWARDS)
