"""`python -m alerts`: objectives to and from other tools' formats.

export --format openslo|sloth [--fleet FILE]     print the objectives of fleet.yml
import FILE                                      print OpenSLO documents as a `slos` section for fleet.yml
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from alerts.exchange import documents, imported, openslo, sloth
from exporter.fleet import FleetError, load

_FORMATS = {"openslo": openslo.export, "sloth": sloth.export}


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m alerts", description="Objectives to and from other tools' formats."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    export = commands.add_parser("export", help="print the objectives of fleet.yml")
    export.add_argument(
        "--format", choices=sorted(_FORMATS), required=True, help="OpenSLO v1, or a Sloth specification"
    )
    export.add_argument("--fleet", type=Path, default=Path("fleet.yml"), metavar="FILE", help="default: fleet.yml")
    taken = commands.add_parser("import", help="print OpenSLO documents as a slos section for fleet.yml")
    taken.add_argument("file", type=Path, metavar="FILE", help="OpenSLO v1 documents")
    return parser.parse_args(argv)


def _answer(arguments: argparse.Namespace) -> str:
    if arguments.command == "export":
        return documents.write(_FORMATS[arguments.format](load(arguments.fleet)))
    try:
        text = arguments.file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FleetError(f"{arguments.file}: expected UTF-8 text: {error}") from error
    except OSError as error:
        raise FleetError(
            f"{arguments.file}: cannot be read: {error.strerror}; give a file of OpenSLO documents"
        ) from None
    return documents.write([{"slos": imported.section(text, arguments.file.name)}])


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    try:
        sys.stdout.write(_answer(_arguments(argv)))
    except FleetError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
