"""Situations: what every alert has to live through. In: stories; out: variants, each with what has to be told when.

Rules are evaluated every 7, 35, 70 or 210 seconds here, although scrapes come every 10: the edges of windows, whole
multiples of 10 seconds, then hardly ever meet a sample. On a sample at the left edge the two versions of Prometheus
disagree (2.x counts it, 3.x does not), and an alert would fire one evaluation later in one of them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from alerts.model import Severity
from exporter.fleet import Fleet, Replica
from tests.alerts.stories.lines import (
    Lines,
    each_fourth_lost,
    ended,
    no_numbers,
    rebucketed,
    relabelled,
    restarted,
    still,
    text,
)
from tests.prometheus.promtool import Case, Expect

__all__ = ["FLEET", "Situation", "Story", "Told", "Variant", "cases", "variants"]

FLEET = Fleet(replicas=(Replica(name="a", url="http://127.0.0.1:8000"),))
_VARIANT = "@"


class Situation(Enum):
    """What happens. Each is a claim about every alert."""

    FIRES = "fires at the right moment"
    BELOW = "just below the limit"
    NO_TRAFFIC = "no traffic"
    RESET = "counters start again"
    LOST_SCRAPES = "one failed scrape in four"
    GONE = "the replica is gone"
    RELABELLED = "a label changes in the middle"
    REBUCKETED = "the bucket layout changes in the middle"
    NO_NUMBERS = "numbers that are none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Whether the alert fires at a second of the story; with `since`, at any evaluation (or at all of them) since."""

    at: int
    fires: bool
    since: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One situation: the series, and what is told."""

    situation: Situation
    of: str
    lines: Lines
    told: tuple[Told, ...]

    @property
    def name(self) -> str:
        """The claim in words."""
        return f"{self.situation.value}: {self.of}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One alert of one severity.

    `trouble` fires at the second `fires`, not an evaluation earlier; each of `below` lacks one thing, by less than a
    fifth. Where that is too close to bear more (a rate over 1m of which scrapes are lost is up to a tenth too low),
    `clear` is trouble that is plain to see, and `well` a replica that has none. Series and `labels` of the alert say
    `@` where each variant has a name of its own; if none does, variants are tests of their own.

    Where what is left of a budget goes slowly, one version of Prometheus may be `apart` seconds earlier than the other.
    `middle` is the sample with which something happens. `over` is how many seconds after the last sample nothing fires
    any more, `late` how much later it may fire if scrapes are lost. `cannot` says why a situation cannot occur,
    `instead` has other variants for one, `also` more of them; `same` names changes of limits that
    change nothing, and why.
    """

    alert: str
    labels: str
    trouble: Lines
    fires: int
    below: Mapping[str, Lines]
    stages: tuple[str, ...]
    middle: int
    over: int
    severity: Severity = Severity.TICKET
    every: int = 10
    evaluate: int = 35
    late: int = 60
    apart: int = 0
    fleet: Fleet = FLEET
    kept_bounds: str = ""
    clear: Lines | None = None
    well: Lines | None = None
    cannot: Mapping[Situation, str] = field(default_factory=dict)
    instead: Mapping[Situation, tuple[Variant, ...]] = field(default_factory=dict)
    also: tuple[Variant, ...] = ()
    same: Mapping[str, str] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """The second of the last sample."""
        return (max(map(len, self.trouble.values()), default=1) - 1) * self.every


def variants(story: Story) -> tuple[Variant, ...]:
    """Make every situation that can occur."""
    return (
        tuple(
            variant
            for situation in Situation
            if situation not in story.cannot
            for variant in story.instead.get(situation) or _made(story, situation)
        )
        + story.also
    )


Parts = Iterator[tuple[str, Lines, tuple[Told, ...]]]


def _made(story: Story, situation: Situation) -> Iterator[Variant]:
    for of, lines, told in _MADE[situation](story):
        yield Variant(situation=situation, of=of, lines=lines, told=told)


def _fires(story: Story) -> Parts:
    before = (Told(at=story.fires - story.apart - story.evaluate, fires=False),) if story.fires else ()
    yield "trouble", story.trouble, (*before, Told(at=story.fires, fires=True))


def _below(story: Story) -> Parts:
    for name, lines in story.below.items():
        yield name, lines, _never(story)


def _no_traffic(story: Story) -> Parts:
    yield "trouble", still(story.trouble), _never(story)


def _lost_scrapes(story: Story) -> Parts:
    late = story.fires + (2 + story.late // story.evaluate) * story.evaluate
    always = Told(at=story.end, fires=True, since=late)
    yield "trouble", each_fourth_lost(story.clear or story.trouble), (Told(at=late, fires=True), always)
    yield "healthy", each_fourth_lost(_healthy(story)), _never(story)


def _gone(story: Story) -> Parts:
    after = story.fires // story.every + 1
    over = Told(at=story.fires + story.every + story.over, fires=False)
    yield "trouble", ended(story.trouble, after), (Told(at=story.fires, fires=True), over)
    yield "healthy", ended(_healthy(story), story.middle), _never(story)


def _changed(change: Callable[[Lines, Story], Lines]) -> Callable[[Story], Parts]:
    """Change something in the middle: what is in trouble is still found, what is well still well."""

    def parts(story: Story) -> Parts:
        yield "trouble", change(story.clear or story.trouble, story), (Told(at=story.end, fires=True),)
        yield "healthy", change(_healthy(story), story), _never(story)

    return parts


def _no_numbers(story: Story) -> Parts:
    yield "all of them", no_numbers(story.trouble), _never(story)


def _healthy(story: Story) -> Lines:
    return story.well or next(iter(story.below.values()), {})


def _never(story: Story) -> tuple[Told, ...]:
    return (Told(at=story.end, fires=False, since=0),)


_MADE: Mapping[Situation, Callable[[Story], Parts]] = {
    Situation.FIRES: _fires,
    Situation.BELOW: _below,
    Situation.NO_TRAFFIC: _no_traffic,
    Situation.RESET: _changed(lambda lines, story: restarted(lines, story.middle)),
    Situation.LOST_SCRAPES: _lost_scrapes,
    Situation.GONE: _gone,
    Situation.RELABELLED: _changed(lambda lines, story: relabelled(lines, story.middle)),
    Situation.REBUCKETED: _changed(lambda lines, story: rebucketed(lines, story.middle, story.kept_bounds)),
    Situation.NO_NUMBERS: _no_numbers,
}


def cases(story: Story, told: tuple[Variant, ...], *alertnames: str) -> tuple[Case, ...]:
    """Write variants as promtool's cases, in one of them where labels keep them apart, for each name of the alert."""
    each = [
        Case(
            claim=f"{story.alert}: {variant.name}",
            series={series.replace(_VARIANT, variant.name): text(line) for series, line in variant.lines.items()},
            expect=[_expect(story, variant, name, moment) for name in alertnames for moment in variant.told],
            every=f"{story.every}s",
        )
        for variant in told
    ]
    if _VARIANT not in story.labels:
        return tuple(each)
    series = {name: values for case in each for name, values in case.series.items()}
    moments = [expect for case in each for expect in case.expect]
    return (
        Case(claim=f"{story.alert}, {story.severity.value}", series=series, expect=moments, every=f"{story.every}s"),
    )


def _expect(story: Story, variant: Variant, alertname: str, moment: Told) -> Expect:
    labels = story.labels.replace(_VARIANT, variant.name)
    common = f'alertname="{alertname}",alertstate="firing",severity="{story.severity.value}"'
    firing = f"ALERTS{{{common}{',' if labels else ''}{labels}}}"
    at = f"{moment.at}s"
    if moment.since is None:
        return Expect(at=at, expr=firing, samples={firing: 1.0} if moment.fires else {})
    evaluations = moment.at // story.evaluate - moment.since // story.evaluate
    counted = f"count_over_time({firing}[{moment.at - moment.since + 1}s])"
    expr = f"sum({counted} >= bool {evaluations})" if moment.fires else counted
    return Expect(at=at, expr=expr, samples={"{}": 1.0} if moment.fires else {})
