"""Command line of the drills: `python -m drills demo | list | run NAME | run all | backtest`.

Exit codes: 0 every drill went as it must, 1 one did not, 2 the command or the machine does not allow it.
"""

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import requests

import drills
from drills.backtest.options import add_options
from drills.model import Drill
from drills.run import DrillFailedError, run
from drills.stack import started
from prometheus.windows import FASTEST
from running.errors import RunningError
from running.paths import ROOT

_DEMO = "model-down"
_RUNS = ROOT / ".run/drills"
_SCALES = range(1, FASTEST + 1)
_VERBS = {"page": "page", "ticket": "open a ticket"}


def catalogue() -> dict[str, Drill]:
    """Return every drill by its name: each module of this package that holds a DRILL."""
    modules = [
        import_module(f"{drills.__name__}.{found.name}")
        for found in iter_modules(drills.__path__)
        if found.name[0] != "_"
    ]
    return {module.DRILL.name: module.DRILL for module in modules if hasattr(module, "DRILL")}


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    known = catalogue()
    options = _parser(known).parse_args(arguments)
    if options.command == "list":
        for drill in known.values():
            print(f"{drill.name:<20} {drill.summary}: {drill.page.alertname} must {_VERBS[drill.page.receiver]}")
        return 0
    signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        if options.command == "backtest":
            return _backtest(options)
        names = {"demo": [_DEMO]}.get(options.command) or (list(known) if options.name == "all" else [options.name])
        return _drills([known[name] for name in names], options.time_scale)
    except (RunningError, OSError) as error:  # of requests, too
        print(f"cannot run: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def _backtest(options: argparse.Namespace) -> int:
    """Run the backtest, whose packages only a development environment has."""
    found: int = import_module("drills.backtest.command").backtest(options)
    return found


def _drills(chosen: Sequence[Drill], time_scale: int | None) -> int:
    """Run drills one after the other, also after one that failed; say at the end which did."""
    passed, failed = [], []
    for drill in chosen:
        try:
            _drill(drill, time_scale or drill.time_scale)
            passed.append(drill.name)
        except DrillFailedError as error:
            print(f"failed: {error}", file=sys.stderr)
            failed.append(drill.name)
    for word, names in (("passed", passed), ("failed", failed)):
        if names:
            print(f"{word}: {', '.join(names)}")
    return 1 if failed else 0


def _drill(drill: Drill, time_scale: int) -> None:
    print(f"drill {drill.name}: {drill.summary}; time runs {time_scale} times faster than on call", flush=True)
    _RUNS.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix=f"{drill.name}-", dir=_RUNS))
    try:
        print("starting simulator, exporter, phone, Alertmanager, Prometheus and load …", flush=True)
        with started(directory, drill, time_scale) as parts:
            print(f"all replicas are up; Prometheus {parts.prometheus.url}, phone {parts.phone.url}", flush=True)
            run(drill, parts)
    except (DrillFailedError, RunningError, requests.RequestException):
        print(f"logs and data of this run: {directory}", file=sys.stderr)
        raise
    except KeyboardInterrupt:
        shutil.rmtree(directory)
        raise
    shutil.rmtree(directory)


def _parser(known: dict[str, Drill]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m drills",
        description="Break something on purpose, and watch the right page arrive on the phone and resolve.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="name every drill")
    demo = commands.add_parser("demo", help="the product in one go: a model goes down, the page arrives and resolves")
    single = commands.add_parser("run", help="run one drill, or all of them")
    add_options(commands.add_parser("backtest", help="judge the rules over months of traffic with labelled incidents"))
    single.add_argument("name", choices=["all", *known], help="a name that `list` prints, or all")
    for command in (demo, single):
        command.add_argument(
            "--time-scale",
            type=int,
            choices=_SCALES,
            metavar="N",
            help=f"divide every window and delay by N, 1 to {_SCALES[-1]} (default: as the drill says)",
        )
    return parser


def _as_interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
