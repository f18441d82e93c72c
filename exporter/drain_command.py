"""Drain command: set and remove the drain marker of a running exporter from a shell. Exit code 1 says why on stderr."""

import argparse
import json
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from exporter.secret import SecretError, SecretFile

__all__ = ["add_drain_commands"]

_PATIENCE = 10.0  # seconds


def add_drain_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `drain NAME --ttl 30m` and `undrain NAME`."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("name", metavar="NAME", help="name of the replica")
    shared.add_argument(
        "--exporter",
        default="http://127.0.0.1:9801",
        metavar="URL",
        help="address of the exporter (default: %(default)s)",
    )
    shared.add_argument(
        "--token-file",
        type=Path,
        default=Path("secrets/admin-token"),
        metavar="FILE",
        help="the exporter's --admin-token-file (default: %(default)s)",
    )
    shared.add_argument("--ca-file", metavar="FILE", help="authority that signed the exporter's certificate")
    drain = commands.add_parser(
        "drain", parents=[shared], help="mark a replica as being drained: what it does is planned"
    )
    drain.add_argument(
        "--ttl", default="30m", metavar="DURATION", help="until it ends by itself (default: %(default)s)"
    )
    drain.set_defaults(run=_drain)
    undrain = commands.add_parser("undrain", parents=[shared], help="remove the marker: the replica counts again")
    undrain.set_defaults(run=_undrain)


def _drain(asked: argparse.Namespace) -> int:
    answer = _request(asked, "PUT", f"?{urlencode({'ttl': asked.ttl})}")
    if answer is None:
        return 1
    note = "" if answer["survives_restart"] else "; the exporter keeps no state: a restart of it ends the drain"
    print(f"{asked.name} is draining until {answer['until']}{note}")  # noqa: T201 - a command line speaks
    return 0


def _undrain(asked: argparse.Namespace) -> int:
    answer = _request(asked, "DELETE")
    if answer is None:
        return 1
    print(f"{asked.name} {'is not draining any more' if answer['was_draining'] else 'was not draining'}")  # noqa: T201
    return 0


def _request(asked: argparse.Namespace, method: str, query: str = "") -> dict[str, Any] | None:
    """Ask the exporter; where that fails, say why and answer None."""
    try:
        token = SecretFile(asked.token_file, "token file").read()
        request = urllib.request.Request(  # noqa: S310 - the operator gives the address
            f"{asked.exporter.rstrip('/')}/drain/{quote(asked.name, safe='')}{query}",
            method=method,
            headers={"Authorization": f"Bearer {token}"},
        )
        trust = ssl.create_default_context(cafile=asked.ca_file) if asked.exporter.startswith("https") else None
        with urllib.request.urlopen(request, timeout=_PATIENCE, context=trust) as answer:  # noqa: S310
            read: dict[str, Any] = json.load(answer)
            return read
    except SecretError as error:
        sentence = f"{error}; runbooks/drain.md says how to make one, --token-file where it is"
    except urllib.error.HTTPError as error:
        sentence = error.read(1000).decode(errors="replace").strip()
    except (OSError, ValueError) as error:
        sentence = f"no answer from {asked.exporter}: {getattr(error, 'reason', error)}"
    print(sentence, file=sys.stderr)  # noqa: T201
    return None
