"""The boards of the committed fleet.yml, as they are generated. In: nothing; out: JSON, its panels, its queries."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboards import render
from exporter.fleet import load
from prometheus.deployment import Deployment

__all__ = ["BOARDS", "ROOT", "Asked", "artefacts", "asked", "panels"]

Json = dict[str, Any]

ROOT = Path(__file__).parents[2]
_VARIABLE = re.compile(r"\$(model|replica)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A query as Grafana asks it when nothing is chosen: every variable is All."""

    board: str
    panel: str
    ref: str
    expr: str
    instant: bool

    def __str__(self) -> str:
        """Answer where the query stands."""
        return f"{self.board}: {self.panel} {self.ref}"


def artefacts() -> dict[str, str]:
    """Answer the files of the boards of the demo fleet."""
    return render.artefacts(load(ROOT / "fleet.yml"), Deployment())


BOARDS: dict[str, Json] = {path: json.loads(text) for path, text in artefacts().items()}


def panels(board: Json) -> list[Json]:
    """Answer the panels that show something; rows only group them."""
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def asked(board: Json) -> Iterator[Asked]:
    """Yield every query of a board, with `All` chosen for each variable."""
    for panel in panels(board):
        for target in panel["targets"]:
            yield Asked(
                board=board["uid"],
                panel=panel["title"],
                ref=target["refId"],
                expr=_VARIABLE.sub(".*", target["expr"]),
                instant=target["instant"],
            )
