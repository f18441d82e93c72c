"""Imported: OpenSLO v1 documents -> the `slos` section of fleet.yml.

In: text. Out: the section as a plain mapping. What Servewatch cannot promise is refused with FleetError, which names
document, path, value and what it takes; nothing is left out in silence.

Our own documents say in annotations what they promise. Others are understood by their queries, where these ask for our
series; where they ask for others, annotations can say which objective is meant.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from alerts.exchange import documents, sloth
from alerts.exchange.asked import asked
from alerts.exchange.openslo import API_VERSION, DEFAULT, MODEL_NOTE, OBJECTIVES_NOTE, SLO_NOTE, THRESHOLD_NOTE
from exporter.catalogue import SLO
from exporter.document import FleetError, Node
from exporter.objectives import LEAST
from prometheus.promql import number_text
from prometheus.windows import duration_text

__all__ = ["section"]

_IGNORED = ("Service", "DataSource", "SLI")
_LATENCIES = ("ttft", "itl")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """One objective as a document tells it; `model` is None for every model that is not named."""

    node: Node
    slo: str
    model: str | None
    share: Decimal
    threshold: timedelta | None
    window: timedelta | None
    is_default: bool

    @property
    def entry(self) -> dict[str, str]:
        """The objective as fleet.yml writes it."""
        within = {"threshold": duration_text(self.threshold)} if self.threshold else {}
        return {**within, "objective": f"{number_text(self.share * 100)}%"}


def section(text: str, file: str) -> dict[str, Any]:
    """Read documents; raises FleetError."""
    told = _told(documents.read(text, file))
    if not told:
        raise FleetError(f"{file}: expected at least one document of kind SLO, got none")
    window = _window(told)
    default = {each.slo: each.entry for each in told if each.model is None}
    models: dict[str, dict[str, Any]] = {}
    for each in told:
        if each.model is not None and not (each.is_default and default.get(each.slo) == each.entry):
            models.setdefault(each.model, {})[each.slo] = each.entry
    return {
        **({"window": duration_text(window)} if window else {}),
        **({"default": default} if default else {}),
        **({"models": models} if models else {}),
    }


def _told(nodes: Iterable[Node]) -> list[_Told]:
    heads = [(node, _head(node)) for node in nodes]
    indicators = {
        head["metadata"].child("name").text("the name of the SLI"): head["spec"]
        for _, head in heads
        if head["kind"].value == "SLI"
    }
    found = [_slo(node, head, indicators) for node, head in heads if head["kind"].value == "SLO"]
    seen: dict[tuple[str, str | None], _Told] = {}
    for each in found:
        other = seen.setdefault((each.slo, each.model), each)
        if other is not each:
            raise FleetError(
                f"{each.node.file}: the objective {each.slo} of {each.model or 'every other model'} is already told by"
                f" {other.node.file}; keep one"
            )
    return found


def _head(node: Node) -> dict[str, Node]:
    if isinstance(node.value, dict) and "apiVersion" not in node.value:
        raise FleetError(
            f"{node.file}: expected an OpenSLO document"
            f" (apiVersion: {API_VERSION}, kind: {', '.join(('SLO', *_IGNORED))}), got {_stranger(node.value)}"
        )
    head = node.mapping(required=("apiVersion", "kind", "metadata", "spec"))
    if head["apiVersion"].value != API_VERSION:
        head["apiVersion"].refuse(API_VERSION)
    if head["kind"].value not in ("SLO", *_IGNORED):
        head["kind"].refuse(f"SLO, {', '.join(_IGNORED)}; alerts come from objectives, whom they tell from fleet.yml")
    head["metadata"].entries()
    return head


def _stranger(value: dict[Any, Any]) -> str:
    """Say what a document without apiVersion is."""
    if value.get("version") == sloth.VERSION:
        return f"a specification for Sloth (version: {sloth.VERSION}); these are written, not read"
    return "one without apiVersion"


def _slo(node: Node, head: dict[str, Node], indicators: dict[str, Node]) -> _Told:
    spec = head["spec"].mapping(
        required=("budgetingMethod", "objectives"),
        optional=("description", "service", "indicator", "indicatorRef", "timeWindow"),
    )
    if spec["budgetingMethod"].value != "Occurrences":
        spec["budgetingMethod"].refuse("Occurrences: every request counts, not every slice of time")
    notes = head["metadata"].child("annotations").entries("annotations")
    slo, model, threshold = _meant(notes, spec, indicators)
    if slo in _LATENCIES and threshold is None:
        place = head["metadata"].child("annotations").child(THRESHOLD_NOTE) if notes else head["metadata"]
        place.refuse(f"an annotation {THRESHOLD_NOTE} such as 2s, since the query does not tell")
    return _Told(
        node=node,
        slo=slo,
        model=model,
        share=_share(spec["objectives"]),
        threshold=threshold if slo in _LATENCIES else None,
        window=_rolling(spec["timeWindow"]) if "timeWindow" in spec else None,
        is_default=OBJECTIVES_NOTE in notes and notes[OBJECTIVES_NOTE].value == DEFAULT,
    )


def _meant(
    notes: dict[str, Node], spec: dict[str, Node], indicators: dict[str, Node]
) -> tuple[str, str | None, timedelta | None]:
    """Tell objective, model and threshold: from annotations, or else from what the good events are."""
    good = _good(spec, indicators)
    if SLO_NOTE not in notes:
        meant = asked(str(good.value))
        if meant is None:
            good.refuse(
                f"a query of Servewatch's own series, or metadata.annotations {SLO_NOTE} ({', '.join(SLO.values)}) and"
                f" {MODEL_NOTE}, which say what is meant"
            )
        return meant
    slo = notes[SLO_NOTE]
    if slo.value not in SLO.values:
        slo.refuse(f"one of: {', '.join(SLO.values)}")
    model = notes[MODEL_NOTE].text("a model name") if MODEL_NOTE in notes else None
    return slo.text(), model, notes[THRESHOLD_NOTE].duration() if THRESHOLD_NOTE in notes else None


def _good(spec: dict[str, Node], indicators: dict[str, Node]) -> Node:
    """Return the query of good events."""
    if "indicatorRef" in spec:
        inner = indicators.get(spec["indicatorRef"].text("the name of an SLI"))
        if inner is None:
            spec["indicatorRef"].refuse("the name of an SLI in the same file")
    elif "indicator" in spec:
        inner = spec["indicator"].mapping(required=("spec",), optional=("metadata",))["spec"]
    else:
        raise FleetError(f"{spec['objectives'].file}: spec: expected indicator or indicatorRef, got neither")
    metric = inner.mapping(optional=("description", "ratioMetric", "thresholdMetric"))
    if "ratioMetric" not in metric:
        metric.get("thresholdMetric", inner).refuse("a ratioMetric: requests are counted as good or not")
    ratio = metric["ratioMetric"].mapping(optional=("counter", "good", "bad", "total", "raw", "rawType"))
    if "good" not in ratio or "total" not in ratio:
        metric["ratioMetric"].refuse("the keys good and total")
    source = ratio["good"].mapping(required=("metricSource",))["metricSource"]
    query = source.mapping(required=("spec",), optional=("type", "metricSourceRef"))["spec"]
    return query.mapping(required=("query",))["query"]


def _share(node: Node) -> Decimal:
    objectives = list(node.items())
    if len(objectives) != 1:
        node.refuse("exactly one objective; write one SLO for each")
    parts = objectives[0].mapping(optional=("displayName", "target", "targetPercent"))
    if ("target" in parts) is ("targetPercent" in parts):
        objectives[0].refuse("either target or targetPercent")
    given = parts.get("target") or parts["targetPercent"]
    value = given.value
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        given.refuse("a number")
    is_share = "target" in parts
    share = Decimal(value) / (1 if is_share else 100)
    if not LEAST <= share < 1:
        given.refuse(_expected_share(Decimal(value)) if is_share else _expected_percentage(Decimal(value)))
    return share.normalize()


def _expected_share(value: Decimal) -> str:
    meant = f", or targetPercent: {value}" if LEAST <= value / 100 < 1 else ""
    return f"a share of good requests, {LEAST} or more and below 1{meant}"


def _expected_percentage(value: Decimal) -> str:
    meant = f", or target: {value}" if LEAST <= value < 1 else ""
    return f"a percentage of good requests, {LEAST * 100:.0f} or more and below 100{meant}"


def _rolling(node: Node) -> timedelta:
    windows = list(node.items())
    if len(windows) != 1:
        node.refuse("exactly one window")
    parts = windows[0].mapping(required=("duration",), optional=("isRolling", "calendar"))
    if "calendar" in parts or not (parts.get("isRolling") and parts["isRolling"].value is True):
        windows[0].refuse("a rolling window (isRolling: true)")
    duration = parts["duration"]
    if str(duration.value)[-1:] not in {"m", "h", "d", "w"}:
        duration.refuse("a number of minutes, hours, days or weeks such as 30d; months are not all alike")
    span = duration.duration()
    if span < timedelta(days=1):
        duration.refuse("a window of at least 1d")
    return span


def _window(told: list[_Told]) -> timedelta | None:
    """Return the one window of all objectives."""
    windows: dict[timedelta, _Told] = {}
    for each in told:
        if each.window:
            windows.setdefault(each.window, each)
    if len(windows) > 1:
        (expected, first), (got, second) = list(windows.items())[:2]
        raise FleetError(
            f"{second.node.file}: spec.timeWindow[0].duration: expected {duration_text(expected)} as in"
            f" {first.node.file}, got {duration_text(got)}; fleet.yml has one window for all"
        )
    return next(iter(windows), None)
