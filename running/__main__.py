"""Command line of the running stage; the Makefile calls it, and people may: `.venv/bin/python -m running --help`."""

import argparse
import contextlib
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from types import ModuleType

from prometheus.windows import TimeScale
from running.errors import CheckFailedError, RunDirectoryError, RunningError
from running.loopback import answers
from running.paths import ROOT, RUN


def main(arguments: list[str] | None = None) -> int:
    """Run one command; answers the exit status."""
    options = _parser().parse_args(arguments)
    try:
        _run(options)
    except RunningError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _run(options: argparse.Namespace) -> None:
    match options.command:
        case "up":
            _up(options)
        case "down":
            print(_part("up").down(options.run.resolve()))
        case "check":
            if not _part("check").run():
                raise CheckFailedError("not everything holds; see above")
        case "build":
            _part("build").build_missing()
        case "unpack":
            _part("debian").unpack()
        case "ensure":
            _part("debian").ensure()
        case "await":
            _await(options.url)
        case "announce":
            _part("announce").announce(options.services, options.replicas, options.run)


def _up(options: argparse.Namespace) -> None:
    fleet, run = options.fleet.expanduser().resolve(), options.run.resolve()
    try:
        _part("up").up(fleet, run=run, time_scale=options.time_scale)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise RunDirectoryError(
            f"{error}: data and logs are written to {run}; make room there, make it writable, or choose another: --run"
        ) from error


def _part(name: str) -> ModuleType:
    """Import what a command needs once `main` runs: Ctrl-C in the first moment ends it without a traceback."""
    return import_module(f"running.{name}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m running", description="Start, stop and equip Servewatch without Docker."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    start = commands.add_parser("up", help="run the product in the foreground until Ctrl-C")
    start.add_argument("--fleet", type=Path, default=ROOT / "fleet.yml", help="the fleet file (default: %(default)s)")
    start.add_argument(
        "--time-scale",
        type=_time_scale,
        default=os.environ.get("TIME_SCALE", "1"),
        metavar="N",
        help="divide every window, delay and interval by this (default: $TIME_SCALE, else 1)",
    )
    stop = commands.add_parser("down", help="stop an `up` that runs elsewhere")
    announcement = commands.add_parser("announce", help="wait for the services, then print their addresses")
    announcement.add_argument("services", nargs="+")
    announcement.add_argument("--replicas", type=int, required=True)
    for command in (start, stop, announcement):
        command.add_argument(
            "--run", type=Path, default=RUN, help="its directory for data and logs (default: %(default)s)"
        )
    commands.add_parser("check", help="check generated files, rules, configurations and imports")
    commands.add_parser("build", help="build current Prometheus and Alertmanager with Go into .tools/bin")
    commands.add_parser("unpack", help="unpack Debian's Prometheus and Alertmanager into .tools/debian")
    commands.add_parser("ensure", help="the same, unless every one of them is on this machine in some version")
    wait = commands.add_parser("await", help="wait until an address answers 200")
    wait.add_argument("url")
    return parser


def _time_scale(text: str) -> int:
    try:
        return TimeScale.read(text).factor
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _await(url: str) -> None:
    while not answers(url):
        time.sleep(0.1)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main())
