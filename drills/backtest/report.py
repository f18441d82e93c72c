"""Report: what the backtest says, as tables for a person and as JSON. In: scores. Out: text, plain values, misses."""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from drills.backtest.incidents import DOWN
from drills.backtest.judge import Case, Score, Spread
from drills.backtest.truth import EVERYTHING_BAD, MODEL_DOWN

__all__ = ["LEGEND", "document", "missed", "tables"]

_PAGES_A_MONTH = 1.0
_LABEL = 34

LEGEND = {
    "incidents that must page": "they spend 2% of a 30-day budget within 1h, or 5% within 6h, or nobody answers",
    "paged in time": "before half as much again is spent, or within 3 minutes; within 1 if nobody answers",
    "incidents that must ticket": "they spend 10% of a 30-day budget within 3 days",
    "pages": "how often alerts that page began to fire, also those that a louder one keeps quiet on call",
    "precision": "pages with cause: an incident must page or spoils half of the requests, now or 10 minutes ago",
    "a month without cause": "all other pages, of all models together; at most one is allowed",
    "in a quiet week": "pages in a week without incidents, not counting the 6 hours after each",
    "minutes to page": "from the start of an incident that must page; - where there was none, never if no page came",
    "since enough was spent": "from when the 2% or 5% were spent; below 0 if the page came sooner",
    "model down": "nobody answers; how many such incidents there were stands in brackets",
    "every request bad": "from one moment to the next more than 90% are bad",
    "budget spent until the page": "of the objective that suffers most; until the end if no page came",
}
"""What the rows mean, by the beginnings of their labels."""


def _shown(value: float | None, form: str) -> str:
    if value is None:
        return "-"
    return form.format(value) if isfinite(value) else "never"


def _spread(spread: Spread, form: str = "{:.1f}") -> str:
    return f"{_shown(spread.median, form)} / {_shown(spread.worst, form)}"


def _down(score: Score) -> Spread:
    return score.minutes(lambda verdict: verdict.incident.slo == DOWN)


def _everything_bad(score: Score) -> Spread:
    return score.minutes(lambda verdict: verdict.everything_bad)


def _must_page(score: Score) -> Spread:
    return score.minutes(lambda verdict: verdict.must_page)


def _rows(score: Score) -> Iterable[tuple[str, str]]:
    in_time = len(score.must_page) - len(score.late)
    never = sum(case.paged is None for case in score.late)
    yield "incidents that must page", f"{len(score.must_page)}"
    yield "  paged in time", f"{in_time} ({_share(in_time, len(score.must_page))})"
    yield "  too late / never", f"{len(score.late) - never} / {never}"
    yield "incidents that must ticket", f"{len(score.must_ticket)}"
    ticketed = len(score.must_ticket) - len(score.silent)
    yield "  ticket or page came", f"{ticketed} ({_share(ticketed, len(score.must_ticket))})"
    yield "pages", f"{score.pages}"
    yield "  precision", _shown(score.precision, "{:.1%}")
    yield "  a month without cause", f"{len(score.baseless) / score.months:.2f}"
    yield "  in a quiet week", f"{score.quiet_pages / score.quiet_weeks:.3f}"
    yield "minutes to page, median / worst", _spread(_must_page(score))
    yield "  since enough was spent", _spread(score.after)
    yield f"  model down ({_down(score).count})", _spread(_down(score))
    yield f"  every request bad ({_everything_bad(score).count})", _spread(_everything_bad(score))
    yield "budget spent until the page", _spread(score.spent, "{:.1%}")


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def tables(scores: Sequence[Score], alerts: Sequence[Score]) -> str:
    """Print the systems side by side, then each alert of ours by itself, then what the rows mean."""
    columns = [dict(_rows(score)) for score in scores]
    labels = list(columns[0])
    lines = [_line("", [score.name for score in scores])]
    lines += [_line(label, [column.get(label, "-") for column in columns]) for label in labels]
    lines += ["", _line("alert", ["pages", "precision", "a quiet week", "minutes, median / worst"])]
    for score in alerts:
        quiet = f"{score.quiet_pages / score.quiet_weeks:.3f}"
        minutes = _spread(Spread.of([case.paged / 60 for case in score.cases if case.paged is not None]))
        lines.append(_line(score.name, [str(score.pages), _shown(score.precision, "{:.1%}"), quiet, minutes]))
    lines += ["", *(f"{label:<{_LABEL}}{meaning}" for label, meaning in LEGEND.items())]
    return "\n".join(lines)


def _line(label: str, cells: Iterable[str]) -> str:
    return f"{label:<{_LABEL}}" + "".join(f"{cell:>26}" for cell in cells)


def missed(score: Score) -> list[str]:
    """Name every figure that is missed, and what missed it."""
    found = [f"must page, came {_when(case)}: {_named(case)}" for case in score.late]
    found += [f"must bring a ticket, brought none: {_named(case)}" for case in score.silent]
    if len(score.baseless) > _PAGES_A_MONTH * score.months:
        found.append(f"{len(score.baseless)} pages without cause in {score.months:.1f} months, at most one a month:")
        found += [
            f"  {model} {page.alert} {page.slo} on day {page.firing / 86400:.2f}" for model, page in score.baseless
        ]
    for claim, spread, limit in (
        ("model down", _down(score), MODEL_DOWN),
        ("every request bad", _everything_bad(score), EVERYTHING_BAD),
    ):
        if spread.worst is not None and spread.worst * 60 > limit:
            found.append(f"{claim}: worst page after {spread.worst * 60:.0f} s, at most {limit:.0f} s")
    return found


def _when(case: Case) -> str:
    return "never" if case.paged is None else f"after {case.paged:.0f} s, {case.spent:.1%} spent"


def _named(case: Case) -> str:
    incident = case.verdict.incident
    deadline = case.verdict.deadline
    limit = f", due after {deadline - incident.start:.0f} s" if deadline else ""
    return (
        f"{incident.model} {incident.shape} ({incident.slo}, {incident.size:.1%} for {incident.duration / 60:.0f} min,"
        f" day {incident.start / 86400:.2f}{limit})"
    )


def document(scores: Iterable[Score], misses: Sequence[str]) -> Mapping[str, Any]:
    """Return everything as plain values."""
    return {
        "figures_missed": list(misses),
        "systems": {
            score.name: {
                "months": score.months,
                "must_page": len(score.must_page),
                "late_or_never": len(score.late),
                "must_ticket": len(score.must_ticket),
                "no_ticket": len(score.silent),
                "pages": score.pages,
                "pages_without_cause": len(score.baseless),
                "precision": score.precision,
                "pages_per_quiet_week": score.quiet_pages / score.quiet_weeks,
                "minutes_to_page": _plain(_must_page(score)),
                "minutes_to_page_since_enough_was_spent": _plain(score.after),
                "minutes_to_page_model_down": _plain(_down(score)),
                "minutes_to_page_every_request_bad": _plain(_everything_bad(score)),
                "budget_spent_until_page": _plain(score.spent),
            }
            for score in scores
        },
    }


def _plain(spread: Spread) -> dict[str, float | int | None]:
    """Write never as null, which JSON has."""
    return {
        "count": spread.count,
        "median": spread.median if spread.median is not None and isfinite(spread.median) else None,
        "worst": spread.worst if spread.worst is not None and isfinite(spread.worst) else None,
    }
