"""Command line: serve, check, scrape, drain, undrain. Exit code 0: done; 1: something is not well; 2: usage."""

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from exporter.document import FleetError
from exporter.drain_command import add_drain_commands
from exporter.fleet import Fleet, load
from exporter.probe import LONGEST
from exporter.serve import run
from exporter.service import RUNBOOKS, Options, Service
from exporter.shard import Shard
from exporter.storage import StorageError
from exporter.web import Web

__all__ = ["main"]

_NAMED = 20  # replicas that a sentence lists


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and answer its exit code."""
    asked = _parser().parse_args(arguments)
    try:
        code: int = asked.run(asked)
    except FleetError as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command line speaks
        return 1
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m exporter",
        description="Exporter of Servewatch: asks model servers, and answers Prometheus in one set of names.",
        epilog="Exit code 0: done; 1: something is not well, a sentence says what; 2: wrong usage.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    fleet = argparse.ArgumentParser(add_help=False)
    fleet.add_argument(
        "--fleet", type=Path, default=Path("fleet.yml"), metavar="FILE", help="the fleet file (default: %(default)s)"
    )
    serve = commands.add_parser("serve", parents=[fleet], help="answer Prometheus and people over HTTP")
    serve.add_argument(
        "--listen", type=_address, default=("127.0.0.1", 9801), metavar="HOST:PORT", help="default: 127.0.0.1:9801"
    )
    serve.add_argument(
        "--state-dir",
        type=Path,
        metavar="DIR",
        help="where learned models and drain markers are kept over a restart (default: nowhere)",
    )
    serve.add_argument(
        "--min-interval",
        type=_duration,
        default=1.0,
        metavar="DURATION",
        help="readers within this time share one scrape (default: 1s)",
    )
    serve.add_argument(
        "--timeout",
        type=_patience,
        default=10.0,
        metavar="DURATION",
        help="time for a scrape whose reader does not say how long it waits (default: 10s)",
    )
    serve.add_argument(
        "--admin-token-file",
        type=Path,
        metavar="FILE",
        help="token that a request must carry to change anything; without it nothing can be changed",
    )
    serve.add_argument(
        "--web-config-file",
        type=Path,
        metavar="FILE",
        help="TLS, client certificates and users, as Prometheus' exporters are told them",
    )
    serve.add_argument(
        "--runbooks",
        type=Path,
        default=RUNBOOKS,
        metavar="DIR",
        help="runbooks to serve, as generate.py --out writes them (default: those of this checkout)",
    )
    serve.add_argument(
        "--shard",
        type=_shard,
        default=Shard(),
        metavar="I/N",
        help="watch part I of N of the fleet, so that N exporters share it (default: 1/1)",
    )
    serve.set_defaults(run=_serve)
    check = commands.add_parser("check", parents=[fleet], help="read the fleet file and say whether it can be used")
    check.set_defaults(run=_check)
    scrape = commands.add_parser("scrape", parents=[fleet], help="scrape one replica and print its page")
    scrape.add_argument("name", metavar="NAME", help="name of the replica")
    scrape.add_argument("--timeout", type=_patience, default=10.0, metavar="DURATION", help="default: 10s")
    scrape.add_argument("--debug", action="store_true", help="say why, on standard error")
    scrape.set_defaults(run=_scrape)
    add_drain_commands(commands)
    return parser


def _serve(asked: argparse.Namespace) -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    fleet = load(asked.fleet)
    web = Web(asked.web_config_file) if asked.web_config_file is not None else None
    options = Options(
        fleet=asked.fleet,
        state_dir=asked.state_dir,
        min_interval=asked.min_interval,
        timeout=asked.timeout,
        admin_token_file=asked.admin_token_file,
        shard=asked.shard,
        runbooks=asked.runbooks,
    )
    host, port = asked.listen
    try:
        run(options, fleet, host, port, web)
    except StorageError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    except OSError as error:
        # Errors of name resolution are numbered below 0, and only they say themselves what they mean.
        reason = os.strerror(error.errno) if error.errno is not None and error.errno > 0 else error.strerror or error
        print(f"cannot serve on {host}:{port}: {reason}; stop what holds it, or give another --listen", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _check(asked: argparse.Namespace) -> int:
    fleet = load(asked.fleet)
    count = len(fleet.replicas)
    watched = f"{count} replica{'s' * (count != 1)}" if count else "no replica yet (include matches no file)"
    print(f"{asked.fleet}: {watched}, good to use")  # noqa: T201
    for gap in fleet.oncall.gaps():
        print(f"{asked.fleet}: {gap}", file=sys.stderr)  # noqa: T201
    return 0


def _scrape(asked: argparse.Namespace) -> int:
    return asyncio.run(_scrape_once(asked, load(asked.fleet)))


async def _scrape_once(asked: argparse.Namespace, fleet: Fleet) -> int:
    service = Service(Options(fleet=asked.fleet), fleet)
    try:
        watch = service.watches.get(asked.name)
        if watch is None:
            known, more = list(service.watches)[:_NAMED], len(service.watches) - _NAMED
            others = f" and {more} more" if more > 0 else ""
            sentence = f"no replica is named {asked.name!r}; there are: {', '.join(known) or 'none'}{others}"
            print(sentence, file=sys.stderr)  # noqa: T201
            return 1
        outcome = await watch.look(asked.timeout)
    finally:
        await service.close()
    sys.stdout.write(outcome.page)
    if asked.debug:
        lines = [
            f"url:     {watch.replica.url}",
            f"engine:  {outcome.engine or 'not recognised'}",
            f"model:   {outcome.model or 'not known'}",
            f"state:   {outcome.state}",
            f"took:    {outcome.duration:.3f} s",
            *([f"error:   {outcome.sentence}"] if outcome.sentence else []),
            *(f"note:    {note}" for note in outcome.notes),
        ]
        print(*lines, sep="\n", file=sys.stderr)  # noqa: T201
    return 0 if outcome.up else 1


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:  # noqa: PLR2004
        raise argparse.ArgumentTypeError(f"expected HOST:PORT, got {text!r}")
    return host.strip("[]"), int(port)


def _shard(text: str) -> Shard:
    try:
        return Shard.read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _duration(text: str) -> float:
    for unit, factor in (("ms", 0.001), ("s", 1.0), ("m", 60.0)):
        number = text.removesuffix(unit)
        if number != text and number.replace(".", "", 1).isdecimal():
            return float(number) * factor
    raise argparse.ArgumentTypeError(f"expected a duration such as 500ms, 1s or 2m, got {text!r}")


def _patience(text: str) -> float:
    if not 0 < (duration := _duration(text)) <= LONGEST:
        raise argparse.ArgumentTypeError(f"expected a duration above 0s and up to {LONGEST:g}s, got {text!r}")
    return duration


if __name__ == "__main__":
    sys.exit(main())
