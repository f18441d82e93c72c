"""Boards -> files. In: the modules of `dashboards.boards`; out: {path: text}, the same bytes at every run."""

import json
import pkgutil
from importlib import import_module

from dashboards import boards
from dashboards.board import Board, board_json

__all__ = ["artefacts", "every_board"]


def every_board() -> tuple[Board, ...]:
    """Return the boards, one per module of `dashboards.boards`, by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(boards.__path__))
    return tuple(_board(name) for name in names)


def artefacts() -> dict[str, str]:
    """Return path and text of every board. JSON has no comments: the folder's name says that it is generated."""
    return {
        f"dashboards/generated/{board.uid}.json": json.dumps(board_json(board), indent=2, ensure_ascii=False) + "\n"
        for board in every_board()
    }


def _board(name: str) -> Board:
    board: Board = import_module(f"dashboards.boards.{name}").BOARD
    if board.uid != name.replace("_", "-"):
        raise ValueError(f"dashboards/boards/{name}.py: BOARD.uid is {board.uid!r}; name the file after the uid")
    return board
