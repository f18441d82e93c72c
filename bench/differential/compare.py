"""Sets the verdicts on the same pages side by side. In: pages; out: counts, and the differences that nothing explains.

A difference on purpose is never taken on trust: the page is offered again without what we forgive, and then Prometheus
has to agree in full. Where versions of Prometheus disagree with each other, either verdict is right for us; each such
class has its name and reason in `VERSIONS_DISAGREE`.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from bench.differential.exposition import Exposition, Identity, Verdict
from bench.differential.ours import DROPPED, LONGEST_SAMPLE, OurReader, Plain, plain
from bench.differential.real import RealPrometheus

__all__ = ["VERSIONS_DISAGREE", "Comparison", "Difference", "compare"]

_QUOTED_NAME = re.compile(rb'[{,"][ \t]*"|#[ \t]+(?:HELP|TYPE|UNIT)[ \t]+"')
_BLANK_FIRST = re.compile(rb"[ \t]+[a-zA-Z_:{]")
_LINE_NUMBER = re.compile(r"line (\d+) of the page")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A page on which the two disagree without a reason, and what Prometheus said to it less what we forgive."""

    page: Exposition
    ours: Verdict
    theirs: Verdict
    undone: tuple[Exposition, Verdict] | None = None


@dataclass(slots=True, kw_only=True)
class Comparison:
    """What came of some pages."""

    counts: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)

    def add(self, other: "Comparison") -> None:
        """Take in what came of other pages."""
        self.counts.update(other.counts)
        self.differences.extend(other.differences)


def _quoted_names(page: Exposition, ours: Verdict, theirs: Verdict) -> bool:
    return theirs.accepted and _QUOTED_NAME.search(_refused_lines(page, ours)) is not None


def _blank_before_name(page: Exposition, ours: Verdict, theirs: Verdict) -> bool:
    return theirs.accepted and _BLANK_FIRST.match(_refused_lines(page, ours)) is not None


def _empty_openmetrics(page: Exposition, _: Verdict, theirs: Verdict) -> bool:
    return page.openmetrics and not page.body and theirs.accepted


def _refused_lines(page: Exposition, ours: Verdict) -> bytes:
    number = _LINE_NUMBER.match(ours.why)
    if number is None:
        return b""
    first = int(number[1]) - 1
    return b"\n".join(page.body.split(b"\n")[first : first + LONGEST_SAMPLE])


def _bounds_in_one_form(_: Exposition, ours: Verdict, theirs: Verdict) -> bool:
    return ours.accepted and theirs.accepted and _normalised(ours) == _normalised(theirs)


VERSIONS_DISAGREE: dict[str, Callable[[Exposition, Verdict, Verdict], bool]] = {
    # 3.x lets names be any UTF-8 in quotes; 2.42 refuses the page, and so do we: no engine has such names.
    "quoted names, from 3.0": _quoted_names,
    # 3.x takes blanks before a name for a part of the name; 2.42 refuses the page, and so do we.
    "blanks before a name, from 3.0": _blank_before_name,
    # 3.x takes an empty body for an empty page, whatever was promised; 2.42 misses its # EOF, and so do we.
    "empty OpenMetrics page, from 3.0": _empty_openmetrics,
    # 3.x writes le="1" and quantile="1" as "1.0" while it reads; 2.42 keeps what is there, and so do we.
    "le and quantile in one form, from 3.0": _bounds_in_one_form,
}


async def compare(real: RealPrometheus, ours: OurReader, pages: Sequence[Exposition]) -> Comparison:
    """Ask both for each page, and Prometheus once more where a difference on purpose could explain what they say."""
    theirs = await real.judge(pages)
    # In a thread, so that scrapes are answered in time meanwhile.
    result, doubtful = await asyncio.to_thread(_compare, ours, pages, theirs, from_3=real.from_3)
    again = await real.judge([undone.page for _, undone in doubtful])
    for (difference, undone), verdict in zip(doubtful, again, strict=True):
        if difference.ours == verdict:
            result.counts[f"exception: {' and '.join(undone.exceptions)}"] += 1
        else:
            _explain(result, replace(difference, undone=(undone.page, verdict)))
    return result


def _compare(
    ours: OurReader, pages: Sequence[Exposition], verdicts: Sequence[Verdict], *, from_3: bool
) -> tuple[Comparison, list[tuple[Difference, Plain]]]:
    """Answer what is clear, and the differences that depend on what Prometheus says about another page."""
    result = Comparison()
    doubtful: list[tuple[Difference, Plain]] = []
    for page, theirs in zip(pages, verdicts, strict=True):
        difference = Difference(page=page, ours=ours.read(page), theirs=theirs)
        if difference.ours == theirs:
            result.counts["accepted by both" if theirs.accepted else "refused by both"] += 1
        elif undone := _undone(difference, from_3=from_3):
            doubtful.append((difference, undone))
        else:
            _explain(result, difference)
    return result, doubtful


def _undone(difference: Difference, *, from_3: bool) -> Plain | None:
    undone = None if difference.ours.fault else plain(difference.page, from_3=from_3)
    if undone is not None and difference.theirs.accepted and DROPPED in undone.exceptions:
        return None  # a sample that Prometheus takes is none to drop
    return undone


def _explain(result: Comparison, difference: Difference) -> None:
    theirs = difference.undone[1] if difference.undone else difference.theirs
    for name, explains in VERSIONS_DISAGREE.items():
        if not difference.ours.fault and explains(difference.page, difference.ours, theirs):
            result.counts[f"versions disagree: {name}"] += 1
            return
    result.differences.append(difference)
    result.counts["differences"] += 1


def _normalised(verdict: Verdict) -> dict[Identity, int]:
    samples: dict[Identity, int] = {}
    for identity, value in verdict.samples.items():
        samples.setdefault(frozenset(_bounds(identity)), value)
    return samples


def _bounds(identity: Identity) -> Iterable[tuple[str, str]]:
    for name, value in identity:
        if name in {"le", "quantile"}:
            try:
                yield name, repr(float(value))
            except ValueError:
                yield name, value
        else:
            yield name, value
