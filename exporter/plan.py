"""Plan: how pages of one shape become catalogue samples. In: a shape, the bucket layouts, objectives. Out: a `Plan`.

Pages of a replica differ in values, hardly ever in series, so everything that depends on the series alone is worked out
once: which engine name provides a metric, labels, ranks, bucket positions, what is missing. Applying it is arithmetic.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod

from exporter import catalogue
from exporter.buckets import Layouts
from exporter.catalogue import Kind, Metric
from exporter.dialect import Merge, Reading
from exporter.expose import Point, Template
from exporter.histogram import Histogram, Term, Values, histogram, total
from exporter.objectives import Slos
from exporter.shape import Labels, Shape

__all__ = ["ORDER", "Plan", "plan"]

ORDER: Mapping[str, int] = {metric.name: order for order, metric in enumerate(catalogue.METRICS)}
"""The place of each metric on a page."""

_SHOWN = (catalogue.REQUESTS_RUNNING, catalogue.REQUESTS_WAITING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do with the values of a page whose series are the planned ones.

    `terms[i]` computes the value of `points[i]`: a position in the page's values, or a function of them.
    `shown` are the places in `points` of the gauges that people see of a replica, by the gauge's name.
    `sleeping` are positions of series that are 1 while the engine sleeps. `missing` are metrics that the engine is
    known to provide and the page has under no known name; if it has none of them, `recognised` is false. `left_out`
    counts series that the shape has no place for.
    """

    model: str
    points: tuple[Point, ...]
    terms: tuple[Term, ...]
    template: Template
    shown: Mapping[str, tuple[int, ...]]
    histograms: tuple[Histogram, ...]
    sleeping: tuple[int, ...]
    missing: tuple[Metric, ...]
    unmapped: tuple[str, ...]
    left_out: int
    recognised: bool

    def values(self, numbers: Values) -> list[float]:
        """Compute the value of each point."""
        return [numbers[term] if isinstance(term, int) else term(numbers) for term in self.terms]


def plan(shape: Shape, layouts: Layouts, slos: Slos) -> Plan:
    """Work out the plan for pages of one shape."""
    points: list[Point] = []
    terms: list[Term] = []
    histograms: list[Histogram] = []
    in_order = sorted(shape.engine.readings, key=lambda reading: ORDER[reading.metric.name])
    for metric, readings in groupby(in_order, key=lambda reading: reading.metric):
        if metric.kind is Kind.HISTOGRAM:
            found = [one for reading in readings for one in _histograms(shape, reading, layouts[metric.name])]
            histograms += found
            lines = [line for one in found for line in zip(one.points, one.terms, strict=True)]
        else:
            lines = _merged(line for reading in readings for line in _lines(shape, reading))
        points += [point for point, _ in lines]
        terms += [term for _, term in lines]
    provided = {point.metric.name for point in points}
    for point, exact in _exactness(shape, histograms, slos):
        points.append(point)
        terms.append(_constant(float(exact)))
    expected = _expected(shape)
    return Plan(
        model=shape.model,
        points=tuple(points),
        terms=tuple(terms),
        template=Template(points),
        shown={
            metric.name: tuple(at for at, point in enumerate(points) if point.metric is metric)
            for metric in _SHOWN
            if metric.name in provided
        },
        histograms=tuple(histograms),
        sleeping=_sleeping(shape),
        missing=tuple(metric for metric in expected if metric.name not in provided),
        unmapped=shape.unmapped(),
        left_out=shape.left_out,
        recognised=any(metric.name in provided for metric in expected) or bool(shape.own and not shape.engine.required),
    )


def _merged(lines: Iterable[tuple[Point, Term]]) -> list[tuple[Point, Term]]:
    """Add up lines that several readings give to the same series of ours."""
    same: dict[Point, list[Term]] = {}
    for point, term in lines:
        same.setdefault(point, []).append(term)
    return [(point, terms[0] if len(terms) == 1 else _sum(terms)) for point, terms in same.items()]


def _lines(shape: Shape, reading: Reading) -> list[tuple[Point, Term]]:
    """Answer lines and terms of a counter or gauge."""
    groups = shape.by_labels(reading, shape.first_of(reading.names))
    added = [shape.by_labels(reading, shape.at(name)) for name in reading.plus]
    factors = [shape.by_labels(reading, shape.at(name)) for name in reading.times]
    lines = []
    for labels, positions in groups.items():
        point = Point(metric=reading.metric, labels=labels)
        if reading.value is not None:
            read = [reading.value(shape.series[at].labels) for at in positions]
            known = [value for value in read if value is not None]
            lines += [(point, _constant(max(known)))] if known else []
        elif factors:
            columns = [positions, *(more.get(labels, []) for more in factors)]
            lines += [(point, _product(columns))] if all(columns) else []
        elif reading.merge is Merge.MAX and len(positions) > 1:
            lines.append((point, _largest(positions)))
        else:
            lines.append((point, total([*positions, *(at for more in added for at in more.get(labels, ()))])))
    return lines


def _histograms(shape: Shape, reading: Reading, layout: Sequence[float]) -> list[Histogram]:
    """Answer the histograms of a metric, one for each set of labels; the first name with all its parts wins."""
    for name in reading.names:
        parts: dict[str, dict[Labels, list[int]]] = {
            suffix: shape.by_labels(reading, shape.at(name, suffix)) for suffix in ("_bucket", "_count", "_sum")
        }
        built = [
            histogram(
                reading.metric,
                labels,
                layout,
                {suffix: groups.get(labels, ()) for suffix, groups in parts.items()},
                shape.series,
            )
            for labels in parts["_bucket"]
        ]
        found = [one for one in built if one is not None]
        if found:
            return found
    return []


def _exactness(shape: Shape, histograms: Iterable[Histogram], slos: Slos) -> Iterable[tuple[Point, bool]]:
    """Tell for each latency objective of the page's model whether the engine has a bound at its threshold."""
    objectives = slos.of(shape.model)
    for metric, slo, objective in (
        (catalogue.TTFT, "ttft", objectives.ttft),
        (catalogue.TPOT, "itl", objectives.itl),
    ):
        judged = [one for one in histograms if one.points[0].metric is metric]
        if judged:
            labels = (*shape.page_labels(catalogue.SLO_THRESHOLD_EXACT), (catalogue.SLO.name, slo))
            point = Point(metric=catalogue.SLO_THRESHOLD_EXACT, labels=labels)
            yield point, all(one.has_bound(objective.threshold.total_seconds()) for one in judged)


def _expected(shape: Shape) -> tuple[Metric, ...]:
    """Answer the metrics that a page of this shape should hold."""
    implied = [metric for name, metrics in shape.engine.implied.items() if shape.at(name) for metric in metrics]
    return tuple(dict.fromkeys((*shape.engine.required, *implied)))


def _sleeping(shape: Shape) -> tuple[int, ...]:
    sleep = shape.engine.sleep
    if sleep is None:
        return ()
    return tuple(
        at
        for at in shape.places.get(sleep.name, ())
        if not sleep.label or shape.series[at].labels.get(sleep.label) in sleep.values
    )


def _constant(value: float) -> Term:
    return lambda _numbers: value


def _value(term: Term, numbers: Values) -> float:
    return numbers[term] if isinstance(term, int) else term(numbers)


def _sum(terms: Sequence[Term]) -> Term:
    return lambda numbers: sum(_value(term, numbers) for term in terms)


def _product(columns: Sequence[Sequence[int]]) -> Term:
    """Answer a term that adds up each column and multiplies the sums."""
    return lambda numbers: prod(sum(numbers[at] for at in column) for column in columns)


def _largest(positions: Sequence[int]) -> Term:
    return lambda numbers: max(numbers[at] for at in positions)
