"""The README names every fault and every command, and no other."""

import re
from pathlib import Path

from simulator.faults import KINDS

README = Path("simulator/README.md").read_text()


def test_the_readme_lists_every_fault_with_its_parameters() -> None:
    table = README.partition("## Faults")[2].partition("## Phone")[0]
    rows = dict(re.findall(r"(?m)^\| `(\w+)` \| (.*?) ?\|", table))
    assert list(rows) == list(KINDS)
    for name, kind in KINDS.items():
        assert re.findall(r"`(\w+)`", rows[name]) == [parameter.name for parameter in kind.parameters], name


def test_every_command_in_the_readme_exists() -> None:
    commands = set(re.findall(r"python -m simulator (\w+)", README))
    assert commands == {"fleet", "load", "phone", "break", "heal"}
