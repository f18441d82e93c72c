"""Shape: the series of a page seen through an engine's table, before any value is looked at."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from exporter import catalogue
from exporter.catalogue import Metric
from exporter.dialect import Engine, Reading
from exporter.parse import Series
from exporter.selector import selector
from exporter.tame import tamed

__all__ = ["Labels", "Shape", "model_on", "prefix_of", "shape"]

Labels = tuple[tuple[str, str], ...]
_SUFFIXES = ("_bucket", "_count", "_sum")
_MOST_RANKS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The positions of a page's series by name without the engine's prefix; `own` are names that carried it.

    `ranks` tells whether the page speaks of more than one data-parallel rank: only then is the rank a label.
    `left_out` counts series of more ranks than anybody has: each would be a page's worth of series of ours.
    """

    series: tuple[Series, ...]
    places: Mapping[str, tuple[int, ...]]
    own: tuple[str, ...]
    engine: Engine
    model: str
    ranks: bool
    left_out: int

    def at(self, selected: str, suffix: str = "") -> tuple[int, ...]:
        """Answer the positions that a selector means; `suffix` makes it mean a part of a histogram."""
        meant = selector(selected)
        places = self.places.get(f"{meant.name}{suffix}", ())
        return tuple(at for at in places if meant.takes(self.series[at].labels)) if meant.matchers else places

    def first_of(self, names: Iterable[str]) -> tuple[int, ...]:
        """Answer the positions of the first name that the page has; none of an alias' are added."""
        return next((found for found in map(self.at, names) if found), ())

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
            labels += ((catalogue.RANK.name, tamed(rank)),)
        return labels

    def unmapped(self) -> tuple[str, ...]:
        """Answer the engine's names that its table neither reads nor leaves out; one name for each series."""
        known = {
            selector(name).name
            for reading in self.engine.readings
            for name in (*reading.names, *reading.plus, *reading.times)
        }
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
    prefix = prefix_of(series, engine)
    repeated = _repeated(series, engine.replicated) if engine.replicated else frozenset()
    places: dict[str, list[int]] = {}
    own: list[str] = []
    ranks: set[str] = set()
    left_out = 0
    for at, one in enumerate(series):
        if prefix is None or not one.name.startswith(prefix) or at in repeated:
            continue
        rank = one.labels.get(engine.rank_label, "")
        if rank and rank not in ranks:
            if len(ranks) == _MOST_RANKS:
                left_out += 1
                continue
            ranks.add(rank)
        own.append(one.name.removeprefix(prefix))
        places.setdefault(own[-1], []).append(at)
    for at, one in enumerate(series):
        if prefix is None or not one.name.startswith(prefix):
            places.setdefault(one.name, []).append(at)
    return Shape(
        series=series,
        places={name: tuple(found) for name, found in places.items()},
        own=tuple(own),
        engine=engine,
        model=model or model_on(series, engine),
        ranks=len(ranks) > 1,
        left_out=left_out,
    )


def prefix_of(series: Iterable[Series], engine: Engine) -> str | None:
    """Answer the prefix that an engine's series have on a page, None where it has none of them."""
    names = {one.name for one in series}
    found = next((prefix for prefix in engine.prefixes if any(name.startswith(prefix) for name in names)), None)
    if found is None and engine.unprefixed and names.issuperset(engine.unprefixed):
        return ""
    return found


def model_on(series: Iterable[Series], engine: Engine) -> str:
    """Answer the model that a page names itself, empty where it names none."""
    if not engine.model_label:
        return ""
    prefix = prefix_of(series, engine)
    own = (one.labels for one in series if prefix is not None and one.name.startswith(prefix))
    names = (labels.get(engine.model_label, "") for labels in own)
    return tamed(next((name for name in names if name and name != engine.no_model), ""))


def _repeated(series: Iterable[Series], replicated: Collection[str]) -> frozenset[int]:
    """Answer the positions of series that only repeat another's fact: of each set of workers, all but the first."""
    first: dict[tuple[str, frozenset[tuple[str, str]]], tuple[tuple[tuple[int, str], ...], int]] = {}
    repeated: set[int] = set()
    for at, one in enumerate(series):
        fact = (one.name, frozenset(pair for pair in one.labels.items() if pair[0] not in replicated))
        ranks = (one.labels.get(label, "") for label in replicated)
        worker = tuple((len(rank), rank) for rank in ranks)  # 2 before 10
        known = first.get(fact)
        if known is None or worker < known[0]:
            first[fact] = (worker, at)
        if known is not None:
            repeated.add(max(known, (worker, at))[1])
    return frozenset(repeated)
