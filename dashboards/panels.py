"""Panels in the shapes that Grafana 12 and 13 read. In: titles, units, queries; out: JSON without a place.

grafanalib 0.7.1 writes for older Grafanas: an empty refId on every target, the mean of the range in a Stat, thresholds
"" and noValue "none", keys that left Grafana with Angular. Each class here builds grafanalib's panel and corrects it;
`_shaped` keeps only the keys that Grafana still knows. grafana-foundation-sdk judges the outcome in the tests.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from grafanalib import core
from grafanalib._gen import DashboardEncoder

from dashboards.fields import Column, Json, Look

__all__ = ["DATASOURCE", "Panel", "Query", "Stat", "StateTimeline", "Table", "Timeseries", "as_json"]

DATASOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}

_KNOWN = ("type", "title", "description", "datasource", "fieldConfig", "options", "targets", "transformations")
_COLUMNS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A PromQL expression, and what its series are called: `{{label}}` is replaced, and no text lists the labels."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel(ABC):
    """What every panel has to say; sizes are in Grafana's grid units, 24 wide."""

    title: str
    description: str
    queries: Sequence[Query]
    width: int
    height: int

    @abstractmethod
    def json(self) -> Json:
        """Return the panel as Grafana stores it, without `id` and `gridPos`."""

    def _common(self) -> Json:
        """Return the arguments that every panel of grafanalib takes."""
        if not (self.title and self.description and self.queries):
            raise ValueError(f"panel {self.title!r}: needs a title, a description and at least one query")
        if not 1 <= self.width <= _COLUMNS or self.height < 1:
            raise ValueError(f"panel {self.title!r}: expected a width of 1 to 24, got {self.width}x{self.height}")
        return {"title": self.title, "description": self.description, "dataSource": DATASOURCE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeseries(Panel):
    """Lines over time from zero up. Gaps stay gaps: a line across an outage hides it."""

    look: Look
    width: int = 8
    height: int = 8
    maximum: float | None = None
    stacked: bool = False
    overrides: Sequence[Json] = ()

    def json(self) -> Json:
        """Return the panel as Grafana stores it, without `id` and `gridPos`."""
        grafana = core.TimeSeries(
            **self._common(),
            targets=_targets(self.queries),
            spanNulls=False,
            showPoints="never",
            fillOpacity=25 if self.stacked else 0,
            stacking={"mode": "normal" if self.stacked else "none", "group": "A"},
            tooltipMode="multi",
            tooltipSort="desc",
            overrides=list(self.overrides),
        )
        defaults = {**self.look.defaults(), "min": 0, "max": self.maximum}
        return _shaped(grafana, {"fieldConfig": {"defaults": defaults}, "options": {"legend": {"showLegend": True}}})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat(Panel):
    """The last value in big letters: a state is what it is now, not its mean over the range."""

    look: Look
    width: int = 4
    height: int = 4

    def json(self) -> Json:
        """Return the panel as Grafana stores it, without `id` and `gridPos`."""
        grafana = core.Stat(
            **self._common(),
            targets=_targets(self.queries, instant=True),
            reduceCalc="lastNotNull",
            graphMode="none",
            color={"mode": "thresholds"},
        )
        options = {"wideLayout": True, "showPercentChange": False, "percentChangeColorMode": "standard"}
        return _shaped(grafana, {"fieldConfig": {"defaults": self.look.defaults()}, "options": options})


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Panel):
    """Rows of what is true now: one per value of the label `join_by`, or one per series where there is but one query.

    `sort_by` is the title of a column. `empty` is said when there is no row at all.
    """

    empty: str
    columns: Sequence[Column]
    join_by: str = ""
    sort_by: str = ""
    descending: bool = False
    width: int = 24
    height: int = 8

    def json(self) -> Json:
        """Return the panel as Grafana stores it, without `id` and `gridPos`."""
        grafana = core.Table(
            **self._common(),
            targets=_targets(self.queries, instant=True, form="table"),
            transformations=_columns(self.columns, self.join_by),
            overrides=[column.override() for column in self.columns],
        )
        custom = {"align": "auto", "cellOptions": {"type": "auto"}, "filterable": True, "displayMode": None}
        defaults = {**Look(unit="none", empty=self.empty).defaults(), "custom": custom}
        order = [{"displayName": self.sort_by, "desc": self.descending}] if self.sort_by else []
        options = {"showHeader": True, "cellHeight": "sm", "sortBy": order}
        return _shaped(grafana, {"fieldConfig": {"defaults": defaults}, "options": options})


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTimeline(Panel):
    """One bar per series, `per_page` at a time, coloured by the state (text, colour) that its value stands for."""

    empty: str
    states: Mapping[float, tuple[str, str]]
    per_page: int = 20
    width: int = 24
    height: int = 8

    def json(self) -> Json:
        """Return the panel as Grafana stores it, without `id` and `gridPos`."""
        grafana = core.StateTimeline(
            **self._common(),
            targets=_targets(self.queries),
            fillOpacity=80,
            showValue="never",
        )
        look = Look(unit="none", empty=self.empty, words=self.states)
        defaults = {**look.defaults(), "custom": {"spanNulls": False}}
        options = {
            "perPage": self.per_page,
            "legend": {"showLegend": True, "calcs": []},
            "tooltip": {"mode": "single", "sort": "none"},
        }
        return _shaped(grafana, {"fieldConfig": {"defaults": defaults}, "options": options})


def as_json(thing: object) -> Json:
    """Return what grafanalib writes for one of its objects."""
    data: Json = json.loads(json.dumps(thing, cls=DashboardEncoder))
    return data


def _targets(queries: Sequence[Query], *, instant: bool = False, form: str = "time_series") -> list[Json]:
    """Name the queries A, B, C: without a refId of its own, Grafana cancels one for the next."""
    return [
        {
            "refId": ref,
            "datasource": DATASOURCE,
            "expr": query.expr,
            "legendFormat": query.legend or "__auto",
            "editorMode": "code",
            "format": form,
            "instant": instant,
            "range": not instant,
        }
        for ref, query in zip(ascii_uppercase, queries, strict=False)
    ]


def _columns(columns: Sequence[Column], join_by: str) -> list[Json]:
    """Join the answers into rows, keep the named fields, title and order them."""
    names = [column.source for column in columns]
    join = [{"id": "joinByField", "options": {"byField": join_by, "mode": "outer"}}] if join_by else []
    order = {
        "excludeByName": {},
        "indexByName": {name: index for index, name in enumerate(names)},
        "renameByName": {column.source: column.title for column in columns},
    }
    return [
        *join,
        {"id": "filterFieldsByName", "options": {"include": {"names": names}}},
        {"id": "organize", "options": order},
    ]


def _shaped(grafana: Any, corrections: Json) -> Json:  # noqa: ANN401 - grafanalib ships no types
    written = as_json(grafana)
    data = {key: written[key] for key in _KNOWN}
    _correct(data, corrections)
    defaults = data["fieldConfig"]["defaults"]
    for place in (defaults, defaults.get("custom", {})):
        for key in [key for key, value in place.items() if value is None]:
            del place[key]
    return data


def _correct(data: Json, corrections: Json) -> None:
    """Lay the corrections over the data, mapping by mapping."""
    for key, value in corrections.items():
        if isinstance(value, dict) and isinstance(data.get(key), dict):
            _correct(data[key], value)
        else:
            data[key] = value
