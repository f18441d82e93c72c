"""Everything that Servewatch ships has no problem, and recorded series have the labels that the code promises."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

import generate
from alerts import objectives
from exporter.fleet import Fleet, load
from prometheus import indicators, recording
from prometheus.deployment import Deployment
from prometheus.lint import lint, vocabulary
from prometheus.lint.sources import boards, pages, rule_files
from tests.prometheus.fleets import MIXED

ROOT = Path(generate.__file__).parent
SHIPPED = load(ROOT / "fleet.yml")
SOURCES = {".yml": rule_files.read, ".json": boards.read, ".md": pages.read}


def expressions(fleet: Fleet) -> dict[str, str]:
    files = generate.artefacts(fleet, Deployment())
    return {
        path: text for path, text in files.items() if "/rules/" in path or path.startswith(("dashboards/", "runbooks/"))
    }


@pytest.mark.parametrize("fleet", [SHIPPED, MIXED, replace(SHIPPED, replicas=())], ids=["shipped", "mixed", "empty"])
def test_rules_boards_and_runbooks_have_no_problem(fleet: Fleet) -> None:
    assert [str(problem) for problem in lint(expressions(fleet), vocabulary(fleet, {}))] == []


@pytest.mark.parametrize("days", [1, 2, 3, 90])
def test_whatever_the_slo_window_every_series_that_is_asked_for_is_recorded(days: int) -> None:
    fleet = replace(SHIPPED, slos=replace(SHIPPED.slos, window=timedelta(days=days)))
    assert [str(problem) for problem in lint(expressions(fleet), vocabulary(fleet, {}))] == []


@pytest.mark.parametrize("kind", [".yml", ".json", ".md"])
def test_every_kind_of_file_holds_expressions(kind: str) -> None:
    files = {path: text for path, text in expressions(SHIPPED).items() if path.endswith(kind)}
    found = {path: len(SOURCES[kind](path, text)) for path, text in files.items()}
    assert sum(found.values()) > 20


def test_the_lint_infers_the_labels_that_the_code_promises() -> None:
    rules = {path: text for path, text in expressions(SHIPPED).items() if "/rules/" in path}
    known = vocabulary(SHIPPED, rules)
    groups = (*indicators.groups(SHIPPED.slos), *recording.groups(), *objectives.groups(SHIPPED.slos))
    promised = {rule.recorded.name: {label.name for label in rule.recorded.labels} for g in groups for rule in g.rules}
    assert promised
    for name, labels in promised.items():
        meaning = known.meaning(name)
        assert meaning is not None, name
        assert set(meaning.labels or ()) == labels, name
