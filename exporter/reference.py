"""Reference: catalogue and engine files -> METRICS.md, so that it cannot say what the code does not do. Pure."""

from collections.abc import Iterable, Iterator

from exporter import catalogue
from exporter.catalogue import METRICS, Group, Kind, Label, Metric, bound_text
from exporter.dialect import Engine, Reading
from exporter.engines import ENGINES
from exporter.failures import REASONS, STATES
from exporter.gpu import provenance

__all__ = ["metrics_md"]

_OURS = frozenset({Group.GPU, Group.CONFIGURATION, Group.EXPORTER})
_INTRODUCTION = """\
<!-- Generated from exporter/catalogue.py, exporter/engines/ and exporter/gpu/ by `make generate`; do not edit. -->
# Metrics

Every metric that the exporter writes, what it means, and which engine can provide it.
The names are the same for every engine and every version of it.
A metric that an engine cannot provide is absent from its page, never 0.

Every series of a replica also carries the target labels: `replica`, `engine`, `instance`, the free ones of fleet.yml.
"""
_ROUTERS = """\
## Several models behind one address

A llama-server that was started without a model is a router: it runs a process for each model.
Its page here has the series of every loaded model, told apart by `model`, and never makes it load one.
`llm_replica_up` and `llm_replica_state` speak of each model that the router lists, up to 64, loaded ones first.
A model that is not loaded is `sleeping` and up: the next request for it loads it, as it wakes a server that sleeps.
So LLMModelDown stays quiet about a model that sleeps wherever it could run.
It speaks when the model's process failed (`broken`), or the router is gone and last had the model loaded.
A model's process that fails costs that model's series; the others stay.
With `model` in fleet.yml only that model of the router is watched.
Several replicas may name one router, each with `engine: llama-server` and a `model` of its own.
Then each model has labels and a drain marker of its own.
"""
_CARDS = """\
Where the numbers of cards come from

NVML: calls of NVIDIA's library.
DCGM: names on the page of dcgm-exporter; what its list of counters (`-f`) does not name is absent here.
AMD: names on the page of AMD's device-metrics-exporter, without the prefix that its configuration may add.
What `llm_gpu_info` says stands in labels there.
Where several names are given, the first one that is there is read; units become those of the metric's name.
Of a divided card (MIG, AMD's partitions) sensors are told once, for the whole card, and memory for each part.
How busy a part is only DCGM tells, by `DCGM_FI_PROF_GR_ENGINE_ACTIVE`."""
_BUCKETS = """\
## Buckets

A histogram has the same bounds on every replica, whatever engine, version and configuration it runs.
So histograms can be summed.
The bounds are those below and, in addition, every threshold of fleet.yml that the histogram is judged by:
time to first token by `ttft`, time per output token and inter-token latency by `itl`.
Where the engine has the same bound, its count is used as it is.
Where it has not, the count is interpolated linearly between its neighbours.
If such a bound is a threshold, `llm_slo_threshold_exact` is 0.
Above the engine's last finite bound nothing is known: observations beyond it count in `+Inf` only.
"""


def metrics_md() -> str:
    """Write METRICS.md."""
    chapters = [
        _INTRODUCTION,
        *(_chapter(group) for group in Group),
        _sources(),
        _card_sources(),
        _labels(),
        _states(),
        _ROUTERS,
        _BUCKETS + _bounds(),
    ]
    return "\n".join(chapters)


def _chapter(group: Group) -> str:
    metrics = [metric for metric in METRICS if metric.group is group]
    if group is Group.GPU:
        lines = [_row(metric, provenance.ability(metric)) for metric in metrics]
        return _table(group.value, ("metric", "kind", "labels", "meaning", *provenance.TITLES), lines)
    if group in _OURS:
        lines = [_row(metric, ()) for metric in metrics]
        return _table(group.value, ("metric", "kind", "labels", "meaning"), lines)
    titles = tuple(engine.title for engine in ENGINES.values())
    lines = [_row(metric, (_ability(engine, metric) for engine in ENGINES.values())) for metric in metrics]
    return _table(group.value, ("metric", "kind", "labels", "meaning", *titles), lines)


def _row(metric: Metric, abilities: Iterable[str]) -> str:
    cells = (f"`{metric.name}`", metric.kind.value, _label_names(metric), metric.help, *abilities)
    return f"| {' | '.join(cells)} |"


def _ability(engine: Engine, metric: Metric) -> str:
    """Say whether a metric exists for an engine, and under which condition; what no engine file reads is our own."""
    readings = _readings(engine, metric)
    if not readings:
        return "no" if any(_readings(other, metric) for other in ENGINES.values()) else "yes"
    notes = "; ".join(reading.note for reading in readings if reading.note)
    return f"yes ({notes})" if notes else "yes"


def _sources() -> str:
    """Say under which names the engines provide each metric."""
    titles = tuple(engine.title for engine in ENGINES.values())
    lines = [
        f"| `{metric.name}` | " + " | ".join(_names(engine, metric) for engine in ENGINES.values()) + " |"
        for metric in METRICS
        if any(_readings(engine, metric) for engine in ENGINES.values())
    ]
    prefixes = ", ".join(f"`{engine.prefixes[0]}` ({engine.title})" for engine in ENGINES.values())
    return _table(
        f"Where the numbers come from\n\nNames on the engine's page, without its prefix: {prefixes}.\n"
        "A name that begins with `/` is a field of another endpoint's answer.\n"
        "Braces select series by their labels, as in PromQL.\n"
        "Where several names are given, the first one on the page is read: the others are its older names.",
        ("metric", *titles),
        lines,
    )


def _card_sources() -> str:
    """Say under which names the sources tell of cards."""
    lines = [
        f"| `{metric.name}` | {' | '.join(provenance.names(metric))} |"
        for metric in METRICS
        if provenance.is_told(metric)
    ]
    return _table(_CARDS, ("metric", *provenance.TITLES), lines)


def _names(engine: Engine, metric: Metric) -> str:
    return " and ".join(map(_name, _readings(engine, metric)))


def _name(reading: Reading) -> str:
    current, *older = (_cell(name) for name in reading.names)
    parts = "".join(f" + {_cell(name)}" for name in reading.plus) + "".join(
        f" * {_cell(name)}" for name in reading.times
    )
    return current + parts + (f", else {', '.join(older)}" if older else "")


def _cell(name: str) -> str:
    """Write a name as code; even there a bar would end the table's cell."""
    return f"`{name}`".replace("|", r"\|")


def _labels() -> str:
    labels: dict[str, list[Label]] = {}
    for value in vars(catalogue).values():
        if isinstance(value, Label):
            labels.setdefault(value.name, []).append(value)
    lines = [
        f"| `{label.name}` | {label.help} | {_codes(label.values)} |" for same in labels.values() for label in same
    ]
    return _table("Labels", ("label", "meaning", "values"), lines)


def _states() -> str:
    """Say what states mean, and why scrapes fail."""
    states = _table(
        "States\n\nA replica, or each model of a router, is in one of them: `llm_replica_state` is 1.",
        ("state", "the replica"),
        (f"| `{state}` | {meaning} |" for state, meaning in STATES.items()),
    )
    reasons = _table(
        "Failed scrapes\n\n`llm_replica_scrape_errors_total` counts them by reason; "
        "the page of the exporter has a sentence for the last one.",
        ("reason", "what happened"),
        (f"| `{reason}` | {meaning} |" for reason, meaning in REASONS.items()),
    )
    return f"{states}\n{reasons}"


def _bounds() -> str:
    lines = [
        f"| `{metric.name}` | {', '.join(bound_text(bound) for bound in metric.buckets)} |"
        for metric in METRICS
        if metric.kind is Kind.HISTOGRAM
    ]
    return "\n" + "\n".join(_rows(("metric", "bounds"), lines)) + "\n"


def _table(title: str, head: tuple[str, ...], lines: Iterable[str]) -> str:
    return f"## {title}\n\n" + "\n".join(_rows(head, lines)) + "\n"


def _rows(head: tuple[str, ...], lines: Iterable[str]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    yield from lines


def _label_names(metric: Metric) -> str:
    return _codes(tuple(label.name for label in metric.labels))


def _codes(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _readings(engine: Engine, metric: Metric) -> list[Reading]:
    return [reading for reading in engine.readings if reading.metric is metric]
