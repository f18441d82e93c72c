"""Boards -> files. In: a `Fleet`, a `Deployment`, the modules of `dashboards.boards`; out: {path: text}. Pure."""

import json
import pkgutil
from importlib import import_module

from dashboards import boards
from dashboards.board import Board, board_json
from exporter.fleet import Fleet
from prometheus.deployment import Deployment

__all__ = ["artefacts", "every_board"]


def artefacts(fleet: Fleet, deployment: Deployment) -> dict[str, str]:
    """Return the files of this stage: path from the root -> text.

    JSON has no comments, so the name of the folder alone says that they are generated.
    """
    return {
        f"dashboards/generated/{board.uid}.json": json.dumps(board_json(board), indent=2, ensure_ascii=False) + "\n"
        for board in every_board(fleet, deployment)
    }


def every_board(fleet: Fleet, deployment: Deployment) -> tuple[Board, ...]:
    """Build the boards, one per module of `dashboards.boards`, in the order of their names."""
    names = sorted(module.name for module in pkgutil.iter_modules(boards.__path__))
    return tuple(_board(name, fleet, deployment) for name in names)


def _board(name: str, fleet: Fleet, deployment: Deployment) -> Board:
    board: Board = import_module(f"dashboards.boards.{name}").board(fleet, deployment)
    if board.uid != name.replace("_", "-"):
        raise ValueError(f"dashboards/boards/{name}.py: the board's uid is {board.uid!r}; name the file after the uid")
    return board
