"""Options of `python -m drills backtest`. Apart from the rest, which needs numpy: whoever drills need not have it."""

import argparse
from pathlib import Path

__all__ = ["SMALL", "add_options"]

SMALL = ("chat-8b",)
"""The models of a small run, which takes one month."""
_MONTHS = 12


def add_options(parser: argparse.ArgumentParser) -> None:
    """Say which options there are."""
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="draws the months (default: %(default)s)")
    parser.add_argument(
        "--months", type=int, default=_MONTHS, metavar="M", help="months of 30 days (default: %(default)s)"
    )
    parser.add_argument("--small", action="store_true", help=f"one month of {' and '.join(SMALL)}, in minutes")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="draw one picture per incident shape instead")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
