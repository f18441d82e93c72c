"""Plots: one picture per incident shape: the indicator, the budget, and what each alert said.

In: a `Scene`. Out: a PNG, light and readable on a phone. `python -m drills backtest --plots DIR` writes them all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from alerts.model import Severity
from drills.backtest.evaluation import Fired
from drills.backtest.incidents import Incident
from drills.backtest.rivals import TEXTBOOK, THRESHOLD

__all__ = ["Scene", "draw"]

Series = NDArray[np.float64]

_INK, _FAINT, _GRID = "#1f2933", "#7b8794", "#e4e7eb"
_GOOD, _BUDGET, _TROUBLE = "#2b6cb0", "#2f855a", "#fdecea"
_COLOURS = {Severity.PAGE.value: "#c53030", Severity.TICKET.value: "#d69e2e"}
_RIVAL = "#a0aec0"
_WIDTH = 6.0
_DOTS = 120
"""Dots per inch: 720 across, twice what a phone shows, so that a tap on the picture has more to give."""
_SHADES = 64
_PANEL = 1.3
_ROW = 0.42
_BAR = 0.36
_LONG = 5 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """An incident as seen over a span of time. Times are in seconds; arrays have one entry per moment of `at`.

    `good` is the share of good requests, NaN where there were none; `left` the share of the 30-day budget.
    """

    incident: Incident
    slo: str
    objective: float
    at: Series
    good: Series
    left: Series
    fired: Sequence[Fired]


def draw(scene: Scene, path: Path) -> None:
    """Write the picture of a scene."""
    rows = _rows(scene.fired)
    height = 2 * _PANEL + _ROW * max(1, len(rows)) + 1.15
    with mpl.rc_context({"font.size": 10.5, "text.color": _INK}):
        figure = Figure(figsize=(_WIDTH, height), dpi=_DOTS, layout="constrained")
        ratios = [_PANEL, _PANEL, max(_ROW * len(rows), _ROW)]
        above, middle, below = figure.subplots(3, 1, sharex=True, gridspec_kw={"height_ratios": ratios})
        _indicator(above, scene)
        _budget(middle, scene)
        _states(below, scene, rows)
        for axes in (above, middle, below):
            _plain(axes, scene)
        figure.suptitle(_title(scene), x=0.01, ha="left", fontsize=12.5)
        _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    """Write few colours only: a third of the bytes, which a phone in a lift has to wait for."""
    drawn = BytesIO()
    figure.savefig(drawn, format="png")
    Image.open(drawn).convert("RGB").quantize(_SHADES, dither=Image.Dither.NONE).save(path, optimize=True)


def _title(scene: Scene) -> str:
    of = {"ttft": "time to first token", "itl": "inter-token latency", "down": "nobody answers"}
    incident = scene.incident
    return f"{incident.shape.capitalize()} ({of.get(incident.slo, incident.slo)}), {_lasting(incident.duration)}"


def _lasting(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} seconds"
    return f"{minutes} minutes" if minutes < 120 else f"{seconds / 3600:.1f} hours"  # noqa: PLR2004 - two hours


def _unit(scene: Scene) -> tuple[str, int]:
    """Choose the unit of the time axis, with its seconds."""
    return ("minutes", 60) if scene.at[-1] - scene.at[0] < _LONG else ("hours", 3600)


def _since(scene: Scene, moments: Series | float) -> Series:
    return np.asarray((np.asarray(moments) - scene.incident.start) / _unit(scene)[1], dtype=np.float64)


def _indicator(axes: Axes, scene: Scene) -> None:
    axes.plot(_since(scene, scene.at), scene.good * 100, color=_GOOD, linewidth=1.2)
    axes.axhline(scene.objective * 100, color=_FAINT, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_ylabel(f"good requests, %\n(objective {scene.objective * 100:.4g})", color=_INK)
    lowest = float(np.nanmin(scene.good)) * 100
    room = max(0.5, (100 - lowest) * 0.08)
    axes.set_ylim(lowest - room, 100 + room)


def _budget(axes: Axes, scene: Scene) -> None:
    left = scene.left * 100
    axes.plot(_since(scene, scene.at), left, color=_BUDGET, linewidth=1.4)
    low, high = float(left.min()), float(left.max())
    room = max(1.0, (high - low) * 0.15)
    axes.set_ylim(low - room, high + room)
    axes.set_ylabel("budget left, %\n(of 30 days)", color=_INK)


def _rows(fired: Sequence[Fired]) -> list[tuple[str, list[Fired]]]:
    """Give each alert and severity a row: ours by their first moment, rivals below."""
    rows: dict[str, list[Fired]] = {}
    rivals = (TEXTBOOK, THRESHOLD)
    for each in sorted(fired, key=lambda one: (one.alert in rivals, one.firing)):
        rows.setdefault(each.alert if each.alert in rivals else f"{each.alert} ({each.severity})", []).append(each)
    return list(rows.items())


def _states(axes: Axes, scene: Scene, rows: Sequence[tuple[str, list[Fired]]]) -> None:
    for number, (name, firings) in enumerate(rows):
        for each in firings:
            colour = _RIVAL if each.alert in (TEXTBOOK, THRESHOLD) else _COLOURS[each.severity]
            pending, firing, resolved = (float(_since(scene, at)) for at in (each.pending, each.firing, each.resolved))
            axes.barh(number, firing - pending, left=pending, height=_BAR, color=colour, alpha=0.3)
            axes.barh(number, resolved - firing, left=firing, height=_BAR, color=colour)
        # Above its bar: beside it the longest name would take half of a phone's screen.
        at = axes.get_yaxis_transform()
        axes.text(0.01, number - _BAR / 2 - 0.06, name, transform=at, va="bottom", fontsize=9.5)
    axes.set_yticks([])
    axes.set_ylim(max(len(rows), 1) - 0.6, -0.8)
    axes.set_xlabel(f"{_unit(scene)[0]} from the start of the incident", color=_INK)
    if not rows:
        axes.text(0.5, 0.5, "no alert", transform=axes.transAxes, ha="center", va="center", color=_FAINT)


def _plain(axes: Axes, scene: Scene) -> None:
    """Leave out what is not needed, and shade the incident."""
    end = float(_since(scene, scene.incident.end))
    axes.axvspan(0, end, color=_TROUBLE, zorder=0, linewidth=0)
    axes.set_xlim(float(_since(scene, scene.at[0])), float(_since(scene, scene.at[-1])))
    axes.set_axisbelow(True)
    axes.grid(visible=True, axis="x", color=_GRID, linewidth=0.6)
    axes.tick_params(colors=_FAINT, labelcolor=_INK, length=3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(_FAINT)
