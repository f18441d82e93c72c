"""A board: rows of panels under variables. In: `Board`; out: the JSON that Grafana's file provisioning reads."""

from collections.abc import Sequence
from dataclasses import dataclass

from grafanalib import core

from dashboards.fields import Json
from dashboards.layout import Row, lay_out
from dashboards.panels import DATASOURCE, as_json

__all__ = ["Board", "Variable", "board_json"]

SCHEMA_VERSION = 42
"""Of Grafana 12 and 13; an older one makes every browser migrate the board at each load."""
TAG = "servewatch"
_MAX_UID = 40  # Grafana refuses longer ones
_ALL = "$__all"
_KNOWN = (
    *("uid", "id", "title", "description", "tags", "timezone", "editable", "graphTooltip", "time", "refresh"),
    *("schemaVersion", "panels", "templating", "annotations", "links"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A choice on top of the board: the values of `label` on the series that `selector` selects.

    `All` is `.*`, not the list of values: when nothing lives the list is empty, and the board must not be.
    """

    name: str
    title: str
    selector: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One board. `uid` is the name of its file and of its address, and never changes."""

    uid: str
    title: str
    description: str
    rows: Sequence[Row]
    variables: Sequence[Variable] = ()
    events: str = ""
    """Selector of what is drawn as an event over every graph."""
    since: str = "now-1h"
    refresh: str = "30s"

    def __post_init__(self) -> None:  # noqa: D105 - the class says what is valid
        if not 1 <= len(self.uid) <= _MAX_UID:
            raise ValueError(f"board {self.title!r}: expected a uid of 1 to {_MAX_UID} letters, got {self.uid!r}")


def board_json(board: Board) -> Json:
    """Return the board as Grafana stores it."""
    grafana = core.Dashboard(
        uid=board.uid,
        title=board.title,
        description=board.description,
        tags=[TAG],
        timezone="browser",
        editable=False,
        graphTooltip=core.GRAPH_TOOLTIP_MODE_SHARED_CROSSHAIR,
        time=core.Time(board.since, "now"),
        refresh=board.refresh,
        schemaVersion=SCHEMA_VERSION,
        panels=lay_out(board.rows),
        templating=core.Templating([_datasource(), *(_variable(variable) for variable in board.variables)]),
        annotations=core.Annotations([_events(board.events)] if board.events else []),
        links=[_other_boards()],
    )
    written = as_json(grafana)
    return {key: written[key] for key in _KNOWN}


def _datasource() -> Json:
    written = as_json(core.Template(name="datasource", label="Data source", type="datasource", query="prometheus"))
    keys = ("type", "name", "label", "query", "hide", "includeAll", "multi", "options", "refresh")
    chosen = {"selected": True, "text": "Prometheus", "value": "prometheus"}
    return {**{key: written[key] for key in keys}, "regex": "", "current": chosen}


def _variable(variable: Variable) -> Json:
    query = f"label_values({variable.selector}, {variable.label})"
    template = core.Template(
        name=variable.name,
        label=variable.title,
        query={"qryType": 1, "query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery"},
        dataSource=DATASOURCE,
        includeAll=True,
        allValue=".*",
        multi=True,
        regex="",
        refresh=core.REFRESH_ON_TIME_RANGE_CHANGE,
    )
    written = as_json(template)
    keys = (
        *("type", "name", "label", "query", "datasource", "hide", "includeAll", "allValue", "multi", "options"),
        *("refresh", "regex", "sort"),
    )
    chosen = {"selected": True, "text": ["All"], "value": [_ALL]}
    return {**{key: written[key] for key in keys}, "definition": query, "current": chosen}


def _events(selector: str) -> Json:
    return {
        "name": "Pages",
        "enable": True,
        "hide": False,
        "iconColor": "red",
        "datasource": DATASOURCE,
        "target": {"refId": "Anno", "datasource": DATASOURCE, "expr": selector, "editorMode": "code", "range": True},
        "titleFormat": "{{alertname}}",
        "textFormat": "{{model}} {{replica}}",
    }


def _other_boards() -> Json:
    return as_json(
        core.DashboardLink(
            title="Boards", type="dashboards", tags=[TAG], asDropdown=True, includeVars=True, keepTime=True
        )
    )
