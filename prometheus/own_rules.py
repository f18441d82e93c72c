"""Own rules: what an operator adds to the generated rules, in `rules.d/*.yml` beside fleet.yml.

In: the path of fleet.yml. Out: the files, and the pattern by which Prometheus loads them.
"""

from pathlib import Path

__all__ = ["FOLDER", "own_rules", "pattern"]

FOLDER = "rules.d"
_FILES = "*.yml"


def own_rules(fleet_file: Path) -> list[Path]:
    """Return the rule files beside a fleet file, by name; none if there is no such folder."""
    return sorted((fleet_file.resolve().parent / FOLDER).glob(_FILES))


def pattern(directory: str) -> str:
    """Return how prometheus.yml names the rule files beside a fleet file in `directory`."""
    return f"{directory}/{FOLDER}/{_FILES}"
