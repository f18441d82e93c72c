"""`python -m prometheus.lint [FILE …]`: print a line per problem, exit 1 if one is an error.

Without files: everything that Servewatch generates, the runbooks, and the rules in `rules.d` beside fleet.yml.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from exporter.fleet import FleetError, load
from prometheus.lint import SUFFIXES, Severity, lint, vocabulary
from prometheus.own_rules import own_rules

_ROOT = Path(__file__).resolve().parents[2]
_RULES = ("prometheus/generated/rules/*.yml", "alerts/generated/rules/*.yml")
_READERS = ("dashboards/generated/*.json", "runbooks/*.md")


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m prometheus.lint", description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help=f"files ending in {', '.join(SUFFIXES)}")
    parser.add_argument("--fleet", type=Path, default=_ROOT / "fleet.yml", help="its thresholds are bounds (fleet.yml)")
    return parser.parse_args(argv)


def _read(files: Sequence[Path]) -> dict[str, str]:
    return {_shown(file): _text(file) for file in files}


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FleetError(f"{_shown(file)}: expected UTF-8 text: {error}") from error


def _shown(file: Path) -> str:
    return str(file.relative_to(_ROOT)) if file.is_relative_to(_ROOT) else str(file)


def _globbed(patterns: Sequence[str]) -> list[Path]:
    return [file for pattern in patterns for file in sorted(_ROOT.glob(pattern))]


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    arguments = _arguments(argv)
    try:
        rules = _globbed(_RULES)
        files = [file.resolve() for file in arguments.files]
        strange = [file for file in files if file.suffix not in SUFFIXES]
        if strange:
            _say(f"{strange[0]}: expected a file ending in {', '.join(SUFFIXES)}")
            return 1
        fleet = load(arguments.fleet)
        shipped = [] if files else [*rules, *_globbed(_READERS)]
        own = files or own_rules(arguments.fleet)
        loaded = [file for file in rules if file not in own]
        problems = (
            *lint(_read(shipped), vocabulary(fleet, {})),
            *lint(_read(own), vocabulary(fleet, _read(loaded))),
        )
    except OSError as error:
        _say(f"{error.filename}: cannot be read: {error.strerror}; give the path of a file to judge")
        return 1
    except FleetError as error:
        _say(str(error))
        return 1
    for problem in problems:
        sys.stdout.write(f"{problem}\n")
    return 1 if any(problem.severity is Severity.ERROR for problem in problems) else 0


if __name__ == "__main__":
    sys.exit(main())
