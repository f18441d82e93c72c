"""Generate every file that is made from fleet.yml: rules, configurations, boards, METRICS.md, facts in runbooks.

Each stage contributes a function that returns {path from the root: text}; here they are merged, and written or
compared. Without options the committed files are written, for the containers of compose.yaml.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from alerts import render as alert_files
from dashboards import render as board_files
from exporter.fleet import Fleet, FleetError, load
from exporter.reference import metrics_md
from prometheus import render as prometheus_files
from prometheus.deployment import LOCAL, Deployment
from prometheus.lint import Severity, lint, vocabulary
from prometheus.own_rules import FOLDER, own_rules
from prometheus.windows import FASTEST, TimeScale
from runbooks import facts as runbook_files

__all__ = ["artefacts", "main", "problems", "write"]

ROOT = Path(__file__).resolve().parent


def artefacts(fleet: Fleet, deployment: Deployment) -> dict[str, str]:
    """Return every generated file: path from the root -> text. The same fleet gives the same bytes."""
    deployment = deployment.reached_by(fleet.links)
    stages = (
        {"exporter/METRICS.md": metrics_md()},
        prometheus_files.artefacts(fleet, deployment),
        alert_files.artefacts(fleet, deployment),
        board_files.artefacts(fleet, deployment),
        runbook_files.artefacts(fleet, deployment),
    )
    merged: dict[str, str] = {}
    for stage in stages:
        twice = merged.keys() & stage.keys()
        if twice:
            raise ValueError(f"two stages generate {', '.join(sorted(twice))}")
        merged.update(stage)
    return merged


def write(files: Mapping[str, str], root: Path) -> None:
    """Write the files below `root`, and remove those left over from an earlier run."""
    for path, text in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")
    for path in _left_over(files, root):
        (root / path).unlink()


def problems(files: Mapping[str, str], root: Path) -> list[str]:
    """Compare the files below `root` with what they should be; one sentence per missing, stale or left-over file."""
    found = []
    for path, text in sorted(files.items()):
        target = root / path
        if not target.is_file():
            found.append(f"{path}: missing; run `make generate`")
        elif target.read_text(encoding="utf-8") != text:
            found.append(f"{path}: stale, fleet.yml or the code says something else; run `make generate`")
    found += [f"{path}: left over, nothing generates it; run `make generate`" for path in _left_over(files, root)]
    return found


def _left_over(files: Mapping[str, str], root: Path) -> Iterator[str]:
    """Yield files in the `generated` folders of the stages that nothing generates."""
    for stage in sorted({path.partition("/")[0] for path in files}):
        folder = root / stage / "generated"
        for file in sorted(folder.rglob("*")):
            path = file.relative_to(root).as_posix()
            if file.is_file() and path not in files:
                yield path


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="generate.py",
        description="Write every file that is made from fleet.yml: rules, configurations, boards, references.",
        epilog="Without options the files of this checkout are written, for the containers of compose.yaml.",
    )
    parser.add_argument(
        "--fleet", type=Path, default=ROOT / "fleet.yml", metavar="FILE", help="the fleet (default: fleet.yml)"
    )
    parser.add_argument(
        "--out", type=Path, default=ROOT, metavar="DIR", help="write the same tree below DIR (default: this checkout)"
    )
    parser.add_argument(
        "--local", action="store_true", help="for plain processes on this machine: 127.0.0.1 instead of container names"
    )
    parser.add_argument(
        "--time-scale",
        type=_time_scale,
        default=TimeScale(),
        metavar="N",
        help=f"divide every window, delay and interval by N, up to {FASTEST}: a drill takes seconds (default: 1)",
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; name missing, stale and left-over files, exit 1 if any"
    )
    return parser.parse_args(argv)


def _time_scale(text: str) -> TimeScale:
    try:
        return TimeScale.read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _deployment(arguments: argparse.Namespace) -> Deployment:
    if not arguments.local:
        return Deployment(scale=arguments.time_scale)
    beside = str(arguments.fleet.resolve().parent)
    return Deployment(addresses=LOCAL, scale=arguments.time_scale, fleet_directory=beside)


def _own_rules_hold(path: Path, fleet: Fleet, files: Mapping[str, str]) -> bool:
    """Judge the operator's own rules, and say what is wrong with them; warnings do not stop anything."""
    own = {}
    for file in own_rules(path):
        try:
            own[f"{FOLDER}/{file.name}"] = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            print(f"{FOLDER}/{file.name}: cannot be read: {error}; mend the file or move it away", file=sys.stderr)
            return False
    if not own:
        return True
    found = lint(own, vocabulary(fleet, {path: text for path, text in files.items() if "/rules/" in path}))
    for problem in found:
        print(problem, file=sys.stderr)
    errors = sum(problem.severity is Severity.ERROR for problem in found)
    if errors:
        print(f"{FOLDER}: {errors} of your own rules' problems are errors; mend them", file=sys.stderr)
    return not errors


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    arguments = _arguments(argv)
    try:
        fleet = load(arguments.fleet)
    except FleetError as error:
        print(error, file=sys.stderr)
        return 1
    for gap in fleet.oncall.gaps():
        print(f"{arguments.fleet}: {gap}", file=sys.stderr)
    files = artefacts(fleet, _deployment(arguments))
    if not _own_rules_hold(arguments.fleet, fleet, files):
        return 1
    if arguments.check:
        found = problems(files, arguments.out)
        print("\n".join(found) or f"{len(files)} generated files are fresh")
        return 1 if found else 0
    write(files, arguments.out)
    print(f"{len(files)} files generated below {arguments.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
