"""Command line of the simulator: `python -m simulator fleet | load | phone | break | heal`.

Exit codes: 0 done, 1 it could not be done (the sentence on stderr says why), 2 wrong usage.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from simulator import commands
from simulator.fields import ConfigError
from simulator.port import PortTakenError

_LAST_PORT = 65535
_CONTROL = "http://127.0.0.1:9810"
_CONFIG = Path(__file__).with_name("demo.yml")


def main(arguments: list[str] | None = None) -> int:
    """Run one command and give its exit code."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except (ConfigError, PortTakenError, commands.CommandError) as error:
        print(f"simulator: {error}", file=sys.stderr)
        return 1
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulator", description=(__doc__ or "").splitlines()[0])
    actions = parser.add_subparsers(required=True, metavar="COMMAND")
    _fleet(actions.add_parser("fleet", help="run the replicas and their control API"))
    _load(actions.add_parser("load", help="send requests to the replicas, open loop"))
    _phone(actions.add_parser("phone", help="show what Alertmanager sends"))
    _break(actions.add_parser("break", help="give a replica a fault"))
    _heal(actions.add_parser("heal", help="take faults away"))
    return parser


def _fleet(parser: argparse.ArgumentParser) -> None:
    parser.description = "Run every replica of the configuration in this process, each on its own port."
    _config(parser)
    parser.add_argument(
        "--listen",
        type=_address,
        default=("127.0.0.1", 9810),
        metavar="HOST:PORT",
        help="control API; the replicas listen on the same host (default 127.0.0.1:9810)",
    )
    parser.add_argument("--cold", action="store_true", help="let every replica load its model first")
    parser.set_defaults(
        run=lambda options: asyncio.run(commands.fleet(options.config, *options.listen, cold=options.cold))
    )


def _load(parser: argparse.ArgumentParser) -> None:
    parser.description = "Send Poisson traffic to every model of the configuration and say each 10 s how it went."
    _config(parser)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--host", default="127.0.0.1", help="where the replicas of the configuration listen")
    where.add_argument("--control", metavar="URL", help="ask this control API for the replicas instead")
    parser.add_argument("--rate", type=_factor, default=1.0, metavar="FACTOR", help="multiply every rate (default 1)")
    parser.add_argument("--every", type=_factor, default=10.0, metavar="SECONDS", help="time between two summaries")
    parser.set_defaults(
        run=lambda options: asyncio.run(
            commands.load(
                options.config, host=options.host, control=options.control, factor=options.rate, every=options.every
            )
        )
    )


def _phone(parser: argparse.ArgumentParser) -> None:
    parser.description = "Receive Alertmanager's webhooks and show them on a page, newest first."
    parser.add_argument(
        "--listen", type=_address, default=("127.0.0.1", 9803), metavar="HOST:PORT", help="default 127.0.0.1:9803"
    )
    parser.add_argument("--store", type=Path, metavar="FILE", help="keep the messages over a restart in this file")
    parser.set_defaults(run=lambda options: asyncio.run(commands.phone(*options.listen, store=options.store)))


def _break(parser: argparse.ArgumentParser) -> None:
    parser.description = "Give a replica a fault: " + commands.fault_list()
    parser.add_argument("replica")
    parser.add_argument("fault")
    parser.add_argument("parameters", nargs="*", metavar="KEY=VALUE")
    parser.add_argument(
        "--for", dest="seconds", metavar="DURATION", help="heal by itself after, for example, 30s or 2m"
    )
    parser.add_argument("--control", default=_CONTROL, metavar="URL", help=f"control API (default {_CONTROL})")
    parser.set_defaults(
        run=lambda options: commands.break_replica(
            options.control, options.replica, options.fault, options.parameters, options.seconds
        )
    )


def _heal(parser: argparse.ArgumentParser) -> None:
    parser.description = "Take one fault, or all of them, from a replica."
    parser.add_argument("replica")
    parser.add_argument("fault", nargs="?")
    parser.add_argument("--control", default=_CONTROL, metavar="URL", help=f"control API (default {_CONTROL})")
    parser.set_defaults(run=lambda options: commands.heal_replica(options.control, options.replica, options.fault))


def _config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, default=_CONFIG, metavar="FILE", help="default simulator/demo.yml")


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"expected HOST:PORT, got {text!r}")
    return host, int(port)


def _factor(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if number <= 0:
        raise argparse.ArgumentTypeError(f"expected a number above zero, got {text!r}")
    return number


if __name__ == "__main__":
    sys.exit(main())
