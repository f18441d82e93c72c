"""Checks: each mistake is found by its check alone, where it stands; what is right instead is left alone."""

from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest
import yaml

import generate
from exporter.fleet import Fleet, load
from exporter.objectives import Slos
from prometheus.deployment import Deployment
from prometheus.lint import Position, Problem, lint, vocabulary
from prometheus.lint.checks import CHECKS
from prometheus.lint.vocabulary import Vocabulary
from tests.prometheus.lint.mistakes import MISTAKES, RULES, Mistake, alert

ROOT = Path(generate.__file__).parent
FLEET = load(ROOT / "fleet.yml")


@cache
def known() -> Vocabulary:
    files = generate.artefacts(FLEET, Deployment())
    return vocabulary(FLEET, {path: text for path, text in files.items() if "/rules/" in path})


def problems(text: str) -> tuple[Problem, ...]:
    return lint({"rules.d/own.yml": text}, known())


def recording(expr: str) -> str:
    return yaml.safe_dump({"groups": [{"name": "own", "rules": [{"record": "own:x:y", "expr": expr}]}]}, width=10_000)


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_found_by_its_check_alone_where_it_stands(mistake: Mistake) -> None:
    [problem] = problems(recording(mistake.wrong))
    assert problem.rule == mistake.check
    assert problem.within == Position.of(mistake.wrong.index(mistake.at), mistake.wrong)
    assert problem.message
    assert problem.fix


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_what_is_right_instead_is_left_alone(mistake: Mistake) -> None:
    assert problems(recording(mistake.right)) == ()


@pytest.mark.parametrize(("check", "replacements"), [(c, r) for c, *r in RULES.values()], ids=RULES.keys())
def test_a_mistake_of_an_alert_is_found_by_its_check_alone(check: str, replacements: list[tuple[str, str]]) -> None:
    [problem] = problems(alert(*replacements))
    assert problem.rule == check


def test_an_alert_that_is_right_is_left_alone() -> None:
    assert problems(alert()) == ()


def test_static_labels_say_who_is_absent() -> None:
    absent = 'absent(up{job="exporter"} == 1)'
    text = alert(
        ("sum by (model) (max_over_time(llm_requests_running[5m])) == 0", absent),
        ("{{ $labels.model }}", "it"),
        ("ticket}", "ticket, job: exporter}"),
    )
    assert problems(text) == ()


def test_a_bare_selector_tells_absent_what_it_equals() -> None:
    text = alert(
        ("sum by (model) (max_over_time(llm_requests_running[5m])) == 0", 'absent(up{job="exporter"})'),
        ("$labels.model", "$labels.job"),
    )
    assert problems(text) == ()


def test_a_pattern_tells_absent_nothing_and_what_is_equal_everything() -> None:
    condition = "sum by (model) (max_over_time(llm_requests_running[5m])) == 0"
    for_text = ("{{ $labels.model }}", "{{ $labels.instance }}")
    assert problems(alert((condition, 'absent(up{job="gone",instance="a"})'), for_text)) == ()
    [problem] = problems(alert((condition, 'absent(up{job=~"gone|left",instance="a"})'), for_text))
    assert problem.rule == "lost-labels"
    assert "cannot tell job:" in problem.message


@pytest.mark.parametrize("pattern", [r"\\pL+", "(?U)st.*", "[[:alpha:]]+"])
def test_a_pattern_that_go_alone_reads_is_left_to_it(pattern: str) -> None:
    assert problems(recording(f'sum(rate(llm_requests_finished_total{{outcome=~"{pattern}"}}[5m]))')) == ()


def test_every_check_has_a_case() -> None:
    assert {check.name for check in CHECKS} == {
        *(mistake.check for mistake in MISTAKES.values()),
        *(check for check, *_ in RULES.values()),
    }


def test_names_of_checks_are_unique() -> None:
    assert len({check.name for check in CHECKS}) == len(CHECKS)


def test_a_threshold_of_the_fleet_is_a_bound() -> None:
    text = recording('sum(rate(llm_time_to_first_token_seconds_bucket{le="2.0"}[5m]))')
    assert problems(text) == ()
    other = vocabulary(Fleet(replicas=(), slos=_with_threshold(3)), {})
    [problem] = lint({"own.yml": text}, other)
    assert problem.rule == "unknown-bound"


def _with_threshold(seconds: int) -> Slos:
    ttft = replace(FLEET.slos.default.ttft, threshold=timedelta(seconds=seconds))
    return replace(FLEET.slos, default=replace(FLEET.slos.default, ttft=ttft))
