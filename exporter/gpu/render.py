"""Render: what the sources told -> the page of /gpu. Pure. Every sentence stands on the page as a comment."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from exporter import catalogue
from exporter.catalogue import METRICS, Group, Metric
from exporter.expose import Point, page
from exporter.gpu.join import Claim
from exporter.gpu.reading import Card, Failure, Reading

__all__ = ["Told", "gpu_page"]

_ORDER = {metric.name: index for index, metric in enumerate(METRICS) if metric.group is Group.GPU}

Sample = tuple[Point, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What one source told this time; times in seconds, `succeeded_at` Unix time. Counts are since the start."""

    source: str
    origin: str
    readings: tuple[Reading, ...] = ()
    failure: Failure | None = None
    sentence: str = ""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    succeeded_at: float | None = None
    dropped: int = 0
    xids: Mapping[tuple[str, int], int] = field(default_factory=dict)
    xid_times: Mapping[tuple[str, int], float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What a person calls the source."""
        return f"{self.source} {self.origin}".strip()

    @property
    def cards(self) -> int:
        """How many cards it tells of, or told of when it could."""
        return len({reading.card.gpu for reading in self.readings})


def gpu_page(told: Sequence[Told], claims: Iterable[Claim], remarks: Iterable[str]) -> str:
    """Write the page. A card that two sources tell of is told of once, by the first one that reaches it."""
    samples = [*_of_sources(told), *_of_cards(told), *_of_replicas(claims)]
    samples.sort(key=lambda sample: _ORDER[sample[0].metric.name])
    return "".join(f"# {' '.join(sentence.split())}\n" for sentence in (*_sentences(told), *remarks)) + page(samples)


def _sentences(told: Iterable[Told]) -> Iterator[str]:
    for each in told:
        sentences = (each.sentence, *(reading.sentence for reading in each.readings), *each.notes)
        yield from (f"{each.title}: {sentence}" for sentence in sentences if sentence)


def _of_sources(told: Iterable[Told]) -> Iterator[Sample]:
    for each in told:
        labels = {catalogue.GPU_SOURCE.name: each.source, catalogue.GPU_ORIGIN.name: each.origin}
        yield _sample(catalogue.GPU_COLLECTOR_UP, labels, float(each.failure is None))
        if each.failure is not None:
            reason = {catalogue.GPU_FAILURE.name: each.failure.value}
            yield _sample(catalogue.GPU_COLLECTOR_FAILURE, labels | reason, 1.0)
        yield _sample(catalogue.GPU_COLLECTOR_CARDS, labels, float(each.cards))
        if each.succeeded_at is not None:
            yield _sample(catalogue.GPU_COLLECTOR_TIME, labels, each.succeeded_at)
        yield _sample(catalogue.GPU_COLLECTOR_SECONDS, labels, each.seconds)
        yield _sample(catalogue.GPU_DROPPED, labels, float(each.dropped))


def _of_cards(told: Iterable[Told]) -> Iterator[Sample]:
    first: dict[Card, tuple[Told, Reading]] = {}
    for each in told:
        for reading in each.readings:
            if reading.card not in first or _knows(reading) > _knows(first[reading.card][1]):
                first[reading.card] = (each, reading)
    for each, reading in first.values():
        yield from _of_card(each, reading)


def _knows(reading: Reading) -> tuple[bool, bool]:
    return reading.up, reading.seen


def _of_card(told: Told, reading: Reading) -> Iterator[Sample]:
    labels = {catalogue.GPU.name: reading.card.gpu, catalogue.PARTITION.name: reading.card.partition}
    if reading.seen:
        yield _sample(catalogue.GPU_UP, labels, float(reading.up))
    facts = {**reading.facts, catalogue.GPU_SOURCE.name: told.source}
    yield _sample(catalogue.GPU_INFO, labels | facts, 1.0)
    for failure in sorted(reading.failures):
        yield _sample(catalogue.GPU_TROUBLE, labels | {catalogue.GPU_FAILURE.name: failure.value}, 1.0)
    for value in reading.values:
        yield _sample(value.metric, labels | _detail(value.metric, value.detail), value.number)
    if not reading.card.partition:
        for (gpu, xid), count in told.xids.items():
            if gpu == reading.card.gpu:
                number = {catalogue.XID.name: str(xid)}
                yield _sample(catalogue.GPU_XID_ERRORS, labels | number, float(count))
                yield _sample(catalogue.GPU_XID_TIME, labels | number, told.xid_times[gpu, xid])


def _of_replicas(claims: Iterable[Claim]) -> Iterator[Sample]:
    for claim in claims:
        labels = {
            catalogue.REPLICA.name: claim.replica,
            catalogue.MODEL.name: claim.model,
            catalogue.GPU.name: claim.card.gpu,
            catalogue.PARTITION.name: claim.card.partition,
        }
        yield _sample(catalogue.REPLICA_GPU_INFO, labels, 1.0)
        if claim.memory is not None:
            yield _sample(catalogue.REPLICA_GPU_MEMORY, labels, claim.memory)


def _detail(metric: Metric, detail: str) -> dict[str, str]:
    return {metric.labels[-1].name: detail} if detail else {}


def _sample(metric: Metric, labels: Mapping[str, str], value: float) -> Sample:
    return Point(metric=metric, labels=tuple(labels.items())), value
