"""Normalise: a parsed page -> samples of the catalogue. Pure, but for the memory of plans for shapes seen before."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from exporter.buckets import layouts
from exporter.catalogue import Metric
from exporter.dialect import Engine
from exporter.engines import ENGINES
from exporter.expose import Point, Template
from exporter.expose import page as page_of
from exporter.objectives import Slos
from exporter.parse import Page, Series
from exporter.plan import ORDER, Plan, plan
from exporter.shape import prefix_of, shape

__all__ = ["Normalised", "Normaliser", "recognise", "together"]

_MANY = 20_000  # series; a plan for more would take more memory than it saves time, and sixteen ranks have 7,000
_REMEMBERED = 2**25
"""Characters of series in all remembered plans: a thousand vLLM replicas of which no two have the same labels.

Each takes ten bytes, with all that belongs to it.
"""
_PLAN = 2_000  # characters that stand for what every plan takes
_SEEN = 2**14
"""Shapes seen once, by a number; a fleet of 1,000 replicas that differ has as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalised:
    """A page in the catalogue's names: `text` as exposed, and what a verdict on the replica needs.

    `values[i]` belongs to `points[i]`.
    """

    model: str
    points: tuple[Point, ...]
    values: Sequence[float]
    text: str
    sleeping: bool
    recognised: bool
    missing: tuple[Metric, ...]
    unmapped: tuple[str, ...]
    dropped: int
    totals: Mapping[str, float]


class Normaliser:
    """Normalises pages for one fleet's objectives; `limit` is of the characters of series in remembered plans."""

    def __init__(self, slos: Slos, limit: int = _REMEMBERED) -> None:
        self._slos = slos
        self._limit = min(limit, _REMEMBERED)
        self._layouts = layouts(slos)
        self._plans: OrderedDict[tuple[tuple[Series, ...], str, str | None], Plan] = OrderedDict()
        self._seen: OrderedDict[int, None] = OrderedDict()
        self._size = 0

    @property
    def size(self) -> int:
        """How many characters of series the remembered plans are for."""
        return self._size

    def normalise(self, page: Page, engine: Engine, model: str | None) -> Normalised:
        """Translate a page; `model` is the name to use, None to take the page's own."""
        known = self._plan(page.series, engine, model)
        values = known.values(page.values)
        shown = {name: [values[at] for at in places] for name, places in known.shown.items()}
        points, template = known.points, known.template
        broken = [one for one in known.histograms if not one.is_sound(page.values)]
        lost = {id(point) for one in broken for point in one.points}
        if not isfinite(sum(values)):  # one replica's NaN would make NaN of its model's sum
            lost.update(id(point) for point, value in zip(points, values, strict=True) if not isfinite(value))
        if lost:
            kept = [(p, v) for p, v in zip(points, values, strict=True) if id(p) not in lost]
            points, values = tuple(point for point, _ in kept), [value for _, value in kept]
            template = Template(points)
        return Normalised(
            model=known.model,
            points=points,
            values=values,
            text=template.render(values),
            sleeping=any(page.values[at] == 1 for at in known.sleeping),
            recognised=known.recognised,
            missing=known.missing,
            unmapped=known.unmapped,
            dropped=page.dropped + known.left_out + sum(one.samples - len(one.points) for one in broken) + len(lost),
            totals={name: sum(found) for name, found in shown.items() if isfinite(sum(found))},
        )

    def _plan(self, series: tuple[Series, ...], engine: Engine, model: str | None) -> Plan:
        key = (series, engine.name, model)
        known = self._plans.get(key)
        if known is None:
            known = plan(shape(series, engine, model), self._layouts, self._slos)
            if len(series) <= _MANY and self._is_back(hash(key)):
                self._plans[key] = known
                self._size += _size(series)
            while self._size > self._limit:
                (oldest, *_), _ = self._plans.popitem(last=False)
                self._size -= _size(oldest)
        else:
            self._plans.move_to_end(key)
        return known

    def _is_back(self, shape: int) -> bool:
        """Tell whether a shape was seen before: who changes labels with each scrape fills no memory with plans."""
        if shape in self._seen:
            del self._seen[shape]
            return True
        self._seen[shape] = None
        if len(self._seen) > _SEEN:
            self._seen.popitem(last=False)
        return False


def _size(series: Iterable[Series]) -> int:
    return _PLAN + sum(one.size for one in series)


def together(pages: Sequence[Normalised]) -> str:
    """Write several pages as one; series of one metric stand together, as the format demands."""
    if len(pages) == 1:
        return pages[0].text
    samples = [sample for one in pages for sample in zip(one.points, one.values, strict=True)]
    return page_of(sorted(samples, key=lambda sample: ORDER[sample[0].metric.name]))


def recognise(page: Page) -> Engine | None:
    """Tell whose page this is by the names on it; prefixes tell more than names without one, so they come first."""
    names = {series.name for series in page.series}
    for engine in ENGINES.values():
        if any(name.startswith(engine.prefixes) for name in names):
            return engine
    return next((engine for engine in ENGINES.values() if prefix_of(page.series, engine) is not None), None)
