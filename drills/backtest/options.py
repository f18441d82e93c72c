"""Options of `python -m drills backtest`. Apart from the rest, which needs numpy: whoever drills need not have it."""

import argparse
from pathlib import Path

__all__ = ["SMALL", "add_options"]

SMALL = ("chat-8b",)
"""The models of a small run, which takes one month."""
_MONTHS = 12
_MOST_MONTHS = 1200
"""Prometheus keeps a century for us."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Say which options there are."""
    parser.add_argument("--seed", type=_seed, default=1, metavar="N", help="draws the months (default: %(default)s)")
    parser.add_argument(
        "--months",
        type=_months,
        default=_MONTHS,
        metavar="M",
        help="months of 30 days (default: %(default)s, which take about half an hour on two cores)",
    )
    parser.add_argument("--small", action="store_true", help=f"one month of {' and '.join(SMALL)}, in a minute or two")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="draw one picture per incident shape instead")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")


def _seed(text: str) -> int:
    return _number(text, least=0, most=None)


def _months(text: str) -> int:
    return _number(text, least=1, most=_MOST_MONTHS)


def _number(text: str, *, least: int, most: int | None) -> int:
    number = int(text) if text.isascii() and text.isdigit() else -1
    if number < least or (most is not None and number > most):
        wanted = f"{least} or more" if most is None else f"{least} to {most}"
        raise argparse.ArgumentTypeError(f"expected a whole number, {wanted}, got {text!r}")
    return number
