"""Command: `python -m drills backtest`. In: options. Out: tables on stdout, an exit code.

Exit codes: 0 every figure is met, 1 one is missed.
"""

import argparse
import json
import os
import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor

from tqdm import tqdm

from drills.backtest.engine import Tools
from drills.backtest.gallery import gallery
from drills.backtest.incidents import SHAPES
from drills.backtest.judge import Score, score
from drills.backtest.options import SMALL
from drills.backtest.profiles import PROFILES
from drills.backtest.report import document, missed, tables
from drills.backtest.rivals import TEXTBOOK, THRESHOLD
from drills.backtest.run import Outcome, run
from running.tools import Tool, all_versions, find

__all__ = ["backtest", "newest"]

_OURS = "Servewatch"
_RIVALS = (TEXTBOOK, THRESHOLD)


def backtest(options: argparse.Namespace) -> int:
    """Run the backtest, print what it found; return the exit code."""
    tools = Tools(prometheus=newest("prometheus"), promtool=newest("promtool"))
    if options.json:
        options.json.open("a", encoding="utf-8").close()  # what cannot be written is better told now than in hours
    if options.plots:
        for path in tqdm(gallery(options.plots, options.seed, tools), total=len(SHAPES), desc="pictures"):
            tqdm.write(str(path))
        return 0
    models = SMALL if options.small else tuple(PROFILES)
    months = 1 if options.small else options.months
    print(f"seed {options.seed}, months: {months}, models: {len(models)}, judge: {tools.prometheus}", flush=True)
    outcomes = _outcomes(models, options.seed, months, tools)
    scores, alerts = _scores(outcomes)
    misses = missed(scores[0])
    print(tables(scores, alerts))
    print("\n".join(["", *(f"missed: {each}" for each in misses)]) if misses else "\nevery figure is met")
    if options.json:
        options.json.write_text(json.dumps(document([*scores, *alerts], misses), indent=2) + "\n", encoding="utf-8")
    return 1 if misses else 0


def newest(name: str) -> Tool:
    """Find the newest version of a tool, which is the fastest; raises ToolMissingError."""
    find(name)
    return max(all_versions(name), key=lambda tool: tool.release)


def _outcomes(models: Sequence[str], seed: int, months: int, tools: Tools) -> list[Outcome]:
    """Run as many models at once as there are cores, behind a progress bar; Prometheus does most of the work.

    When one fails, or somebody stops the command, the others end at their next step.
    """
    whole = 100.0 * len(models)
    over = threading.Event()
    with (
        tqdm(total=whole, bar_format="{l_bar}{bar}| {elapsed}<{remaining}", mininterval=1) as bar,
        ThreadPoolExecutor(max_workers=os.cpu_count()) as threads,
    ):

        def progress(what: str, share: float) -> None:
            if over.is_set():
                raise CancelledError
            bar.set_description(what, refresh=False)
            bar.update(min(100 * share, whole - bar.n))

        try:
            return list(threads.map(lambda model: run(PROFILES[model], seed, months, tools, progress), models))
        finally:
            over.set()


def _scores(outcomes: Sequence[Outcome]) -> tuple[list[Score], list[Score]]:
    """Score our alerts together, the rivals, and each of ours by itself."""
    ours = sorted({fired.alert for outcome in outcomes for fired in outcome.fired}.difference(_RIVALS))
    systems = [score(_OURS, outcomes, ours), *(score(rival, outcomes, [rival]) for rival in _RIVALS)]
    return systems, [score(name, outcomes, [name]) for name in ours]
