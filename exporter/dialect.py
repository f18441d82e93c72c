"""Dialect: what an engine file has to say, as data. One engine is one `Engine` in one file of exporter/engines/.

Names of series are written without the engine's prefix, as selectors in PromQL's form where only some of the series are
meant: `http_responses_total{status_code=~"5.."}`. What other endpoints than the page tell (`Extra`) becomes
series too, named `path:field`, so that one table says where every metric comes from.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any

from exporter.catalogue import Label, Metric
from exporter.failures import State

__all__ = ["Answers", "Engine", "Extra", "Facts", "LabelMap", "Merge", "Reading", "Router", "Sleep", "always"]

Answers = Mapping[str, Any]
"""Decoded JSON of the extra endpoints that answered, by path."""


class Merge(Enum):
    """How series that differ only in labels we do not keep (process id, tensor rank, …) become one."""

    SUM = "sum"
    MAX = "max"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelMap:
    """An engine's label that becomes one of ours: known values are translated, others are `other`."""

    source: str
    target: Label
    values: Mapping[str, str]
    other: str


def always(target: Label, value: str) -> LabelMap:
    """Give every series the same value of one of our labels."""
    return LabelMap(source="", target=target, values={}, other=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Where one catalogue metric comes from.

    `names` are the engine's names for it, newest first: the first one on the page wins, aliases are never added up.
    `plus` are added to it where the engine counts in parts, `times` multiply it where it counts in blocks. `value`
    reads the number from the labels of an info series. Readings of one metric that end in the same labels are added up.
    """

    metric: Metric
    names: tuple[str, ...]
    plus: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    merge: Merge = Merge.SUM
    label: LabelMap | None = None
    value: Callable[[Mapping[str, str]], float | None] | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sleep:
    """A series that is 1 while the engine sleeps; with `label`, only where that label has one of `values`."""

    name: str
    label: str = ""
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """One more endpoint to ask beside the page.

    `when` decides from the answers so far; an extra with `when` is asked after those without. `every` spares an
    endpoint whose answer hardly changes. An extra that fails costs its own series only.
    """

    path: str
    when: Callable[[Answers], bool] | None = None
    every: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the extra endpoints told: identity, and numbers by series name."""

    model: str | None = None
    version: str | None = None
    numbers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Router:
    """How an engine serves several models behind one address, each with a page of its own.

    `refusal` is the status that the page has where no model is named; then `is_here` tells from the extras whether this
    is a router. `path` lists its models, `models` reads names and states from that list, None where it is none, those
    that matter most first. `most` of them are watched: a folder may hold hundreds, of which a handful runs, and each
    costs a dozen series. `query` makes the page, or an extra, one model's; it must never make the engine load one.
    """

    refusal: int
    is_here: Callable[[Answers], bool]
    path: str
    models: Callable[[Any], Mapping[str, State] | None]
    most: int
    query: Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One engine.

    `required`: metrics that every supported version provides; none of them on a page means that the page is not this
    engine's, one missing means that the engine renamed it. `implied`: the same, for pages that hold the named series.
    An engine whose series appear one by one, each with its first use, requires nothing: any series of its own will do.
    `unprefixed`: series that together tell a page of an old version, whose names had no prefix.
    `no_model`: what the engine writes as model where it knows no name.
    `replicated`: labels that tell apart workers which all report the same facts; the first worker's are taken.
    `left_out`: series (families for histograms) that we know and leave out on purpose. `switched_off`: series of pages
    whose engine runs with its metrics off. `keep_alive` false: the engine serves few connections at once; we keep none.
    `is_to_rest`: tells from the extras that the engine sleeps and that the question for its page would wake it up.
    """

    name: str
    title: str
    prefixes: tuple[str, ...]
    readings: tuple[Reading, ...]
    required: tuple[Metric, ...]
    path: str = "/metrics"
    unprefixed: tuple[str, ...] = ()
    implied: Mapping[str, tuple[Metric, ...]] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    switched_off: tuple[str, ...] = ()
    switch_on: str = ""
    model_label: str = ""
    no_model: str = ""
    rank_label: str = ""
    replicated: tuple[str, ...] = ()
    sleep: Sleep | None = None
    extras: tuple[Extra, ...] = ()
    facts: Callable[[Answers], Facts] = lambda _answers: Facts()
    router: Router | None = None
    is_to_rest: Callable[[Answers], bool] | None = None
    keep_alive: bool = True
