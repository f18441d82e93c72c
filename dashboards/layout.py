"""Rows of panels -> panels with an id and a place. In: `Row`s; out: Grafana's `panels` list.

Panels flow from left to right and wrap at 24 columns, so that no two can overlap: Grafana accepts an overlap and pushes
panels around, differently at each load.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from grafanalib import core

from dashboards.fields import Json
from dashboards.panels import Panel, as_json

__all__ = ["Row", "lay_out"]

_COLUMNS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A title over panels, in reading order."""

    title: str
    panels: Sequence[Panel]


def lay_out(rows: Sequence[Row]) -> list[Json]:
    """Return the panels of all rows, each with its id and gridPos, counted from 1 and from the top left."""
    placed: list[Json] = []
    y = 0
    for row in rows:
        placed.append({**_heading(row.title), "id": len(placed) + 1, "gridPos": _place(0, y, _COLUMNS, 1)})
        y += 1
        x = tallest = 0
        for panel in row.panels:
            if x + panel.width > _COLUMNS:
                x, y, tallest = 0, y + tallest, 0
            placed.append({**panel.json(), "id": len(placed) + 1, "gridPos": _place(x, y, panel.width, panel.height)})
            x, tallest = x + panel.width, max(tallest, panel.height)
        y += tallest
    return placed


def _heading(title: str) -> Json:
    written = as_json(core.RowPanel(title=title))
    return {key: written[key] for key in ("type", "title", "collapsed", "panels")}


def _place(x: int, y: int, width: int, height: int) -> Json:
    return as_json(core.GridPos(h=height, w=width, x=x, y=y))
