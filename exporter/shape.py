"""Shape: the series of a page seen through an engine's table, before any value is looked at."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from exporter import catalogue
from exporter.catalogue import Metric
from exporter.dialect import Engine, Reading
from exporter.parse import Series

__all__ = ["Labels", "Shape", "shape"]

Labels = tuple[tuple[str, str], ...]
_SUFFIXES = ("_bucket", "_count", "_sum")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The positions of a page's series by name without the engine's prefix; `own` are names that carried it.

    `ranks` tells whether the page speaks of more than one data-parallel rank: only then is the rank a label.
    """

    series: tuple[Series, ...]
    places: Mapping[str, tuple[int, ...]]
    own: tuple[str, ...]
    engine: Engine
    model: str
    ranks: bool

    def first_of(self, names: Iterable[str]) -> tuple[int, ...]:
        """Answer the positions of the first name that the page has; none of an alias' are added."""
        return next((self.places[name] for name in names if name in self.places), ())

    def by_labels(self, reading: Reading, positions: Iterable[int]) -> dict[Labels, list[int]]:
        """Sort series by the labels they get on our page."""
        groups: dict[Labels, list[int]] = {}
        for at in positions:
            groups.setdefault(self._labels(reading, at), []).append(at)
        return groups

    def _labels(self, reading: Reading, at: int) -> Labels:
        theirs = self.series[at].labels
        labels = self.page_labels(reading.metric, theirs.get(self.engine.rank_label, "") if self.ranks else "")
        if reading.label is not None:
            value = theirs.get(reading.label.source, "")
            labels += ((reading.label.target.name, reading.label.values.get(value, reading.label.other)),)
        return labels

    def page_labels(self, metric: Metric, rank: str = "") -> Labels:
        """Answer the labels that say whose page this is."""
        labels: Labels = ()
        if catalogue.MODEL in metric.labels:
            labels += ((catalogue.MODEL.name, self.model),)
        if rank and catalogue.RANK in metric.labels:
            labels += ((catalogue.RANK.name, rank),)
        return labels

    def unmapped(self) -> tuple[str, ...]:
        """Answer the engine's names that its table neither reads nor leaves out; one name for each series."""
        known = {name for reading in self.engine.readings for name in (*reading.names, *reading.plus)}
        known.update(self.engine.left_out)
        return tuple(
            name
            for name in self.own
            if not name.endswith("_created")
            and name not in known
            and not any(name.endswith(suffix) and name.removesuffix(suffix) in known for suffix in _SUFFIXES)
        )


def shape(series: tuple[Series, ...], engine: Engine, model: str | None) -> Shape:
    """Look at a page's series through an engine's table; without a model given, the page may name it."""
    prefix = next((p for p in engine.prefixes if any(one.name.startswith(p) for one in series)), None)
    places: dict[str, list[int]] = {}
    own: list[str] = []
    ranks: set[str] = set()
    named = ""
    for at, one in enumerate(series):
        if prefix is None or not one.name.startswith(prefix):
            continue
        own.append(one.name.removeprefix(prefix))
        places.setdefault(own[-1], []).append(at)
        ranks.add(one.labels.get(engine.rank_label, ""))
        named = named or one.labels.get(engine.model_label, "")
    for at, one in enumerate(series):
        if prefix is None or not one.name.startswith(prefix):
            places.setdefault(one.name, []).append(at)
    return Shape(
        series=series,
        places={name: tuple(found) for name, found in places.items()},
        own=tuple(own),
        engine=engine,
        model=model or named,
        ranks=len(ranks - {""}) > 1,
    )
