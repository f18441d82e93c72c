"""Sources: expressions are found in every kind of file, problems stand where they are, broken files are refused."""

import json
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from prometheus.lint import lint
from prometheus.lint.sources import boards, pages, rule_files
from prometheus.lint.written import SourceError
from prometheus.windows import INTERVAL
from running import tools
from tests.prometheus.lint.test_checks import known

RULE_FILES = {
    "plain": "groups:\n- name: a\n  rules:\n  - record: a:b:c\n    expr: sum(nothing)\n",
    "single quotes": "groups:\n- name: a\n  rules:\n  - {record: 'a:b:c', expr: 'up{job=''x''} + sum(nothing)'}\n",
    "double quotes": 'groups:\n- name: a\n  rules:\n  - {expr: "up{job=\\"x\\"} + sum(nothing)", record: a:b:c}\n',
    "a block": "groups:\n- name: a\n  rules:\n  - record: a:b:c\n    expr: |\n      up\n      + sum(nothing)\n",
    "a block without an end": "groups:\n- name: a\n  rules:\n  - record: a:b:c\n    expr: |-\n\n        sum(nothing)",
    "an annotation": "groups:\n- name: a\n  rules:\n  - alert: A\n    expr: sum(up)\n    labels: {severity: page}\n"
    "    annotations: {summary: 's {{ with query `nothing` }}', runbook_url: r}\n",
}


@pytest.mark.parametrize("text", RULE_FILES.values(), ids=RULE_FILES.keys())
def test_a_problem_in_a_rule_file_stands_where_the_word_is(text: str) -> None:
    [problem] = lint({"own.yml": text}, known())
    line = text.splitlines()[problem.position.line - 1]
    assert line[problem.position.column - 1 :].startswith("nothing")


def test_a_problem_in_a_folded_expression_stands_at_its_beginning() -> None:
    text = "groups:\n- name: a\n  rules:\n  - record: a:b:c\n    expr: >\n      up +\n      sum(nothing)\n"
    [problem] = lint({"own.yml": text}, known())
    assert (problem.position.line, problem.position.column) == (5, 11)
    assert (problem.within.line, problem.within.column) == (1, 10)


def test_a_problem_in_a_board_stands_where_the_word_is() -> None:
    panels = [{"targets": [{"expr": 'up{job=~"$job"}'}, {"expr": 'up{job="x"}\n+ nothing'}]}]
    text = json.dumps({"panels": panels}, indent=2)
    [problem] = lint({"b.json": text}, known())
    line = text.splitlines()[problem.position.line - 1]
    assert line[problem.position.column - 1 :].startswith("nothing")


def test_a_problem_in_a_runbook_stands_where_the_word_is() -> None:
    text = "# A\n\n1. Look:\n\n   ```promql\n   up\n   + nothing\n   ```\n\n```sh\nnothing\n```\n"
    [problem] = lint({"a.md": text}, known())
    line = text.splitlines()[problem.position.line - 1]
    assert line[problem.position.column - 1 :].startswith("nothing")


def test_variables_of_a_board_stand_for_any_value_and_range() -> None:
    queries = [
        'sum(rate(llm_generation_tokens_total{model=~"$model"}[$__rate_interval]))',
        'sum(rate(llm_generation_tokens_total{model=~"${model:regex}",engine=~"$engine"}[${__range}]))',
        'sum(max_over_time(llm_requests_running{replica=~"[[replica]]"}[$interval:$__interval]))',
    ]
    text = json.dumps({"panels": [{"targets": [{"expr": query} for query in queries]}]})
    assert len(boards.read("b.json", text)) == len(queries)
    assert lint({"b.json": text}, known()) == ()


def test_the_variables_of_a_board_are_queries_too() -> None:
    variables = [
        {"definition": 'label_values(llm_replica_up{model=~"$model"}, pod)'},
        {"definition": "label_values(model)"},
    ]
    [problem] = lint({"b.json": json.dumps({"templating": {"list": variables}})}, known())
    assert problem.rule == "unknown-label"


def test_only_promql_blocks_of_a_page_are_read() -> None:
    assert [each.text for each in pages.read("a.md", "```promql\nup\n```\n\n```sh\nup\n```\n\n`up`\n")] == ["up\n"]


BROKEN = {
    "groups: [": "not YAML",
    "rules: []": "unknown key 'rules'",
    "- a": "expected a mapping",
    "groups: 1": "expected a list",
    "groups: [{rules: []}]": "a group has no name",
    "groups: [{name: a}, {name: a}]": "two groups are named 'a'",
    "groups: [{name: a, every: 5m}]": "unknown key 'every'",
    "groups: [{name: a, interval: soon}]": "'soon' is no duration",
    "groups: [{name: a, limit: abc}]": "limit is no number",
    "groups: [{name: a, rules: [{expr: up}]}]": "not a rule",
    "groups: [{name: a, rules: [{record: a, alert: b, expr: up}]}]": "not a rule",
    "groups: [{name: a, rules: [{record: a}]}]": "not a rule",
    "groups: [{name: a, rules: [{record: a-b, expr: up}]}]": "'a-b' is no name",
    "groups: [{name: a, rules: [{record: a, expr: [up]}]}]": "expected text",
    "groups: [{name: a, rules: [{alert: a, expr: up, for: soon}]}]": "'soon' is no duration",
    "groups: [{name: a, interval: 60}]": "'60' is no duration",
    "groups: [{name: a, rules: [{alert: a, expr: up, for: 5}]}]": "'5' is no duration",
    "groups: [{name: a, rules: [{alert: a, expr: up, keep_firing_for: 5}]}]": "'5' is no duration",
    "groups: [{name: a, rules: [{alert: a, expr: up, for: 1m1h}]}]": "'1m1h' is no duration",
    "groups: [{name: a, rules: [{alert: a, expr: up, for: 293y}]}]": "'293y' is no duration",
    "groups: [{name: a, rules: [{alert: a, expr: up, labels: {a-b: c}}]}]": "'a-b' is no name",
    "groups: [{name: a, rules: [{alert: a, expr: up, labels: {__name__: c}}]}]": "'__name__' is no name",
    "groups: [{name: a, rules: [{alert: a, expr: up, expr: up}]}]": "key 'expr' is given twice",
}


@pytest.mark.parametrize(("text", "message"), BROKEN.items())
def test_a_rule_file_that_prometheus_would_not_load_is_refused(text: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        rule_files.read("own.yml", text)
    [problem] = lint({"own.yml": text}, known())
    assert problem.message.startswith(message)
    assert problem.fix


def test_a_rule_file_nested_too_deeply_is_refused_in_words() -> None:
    with pytest.raises(SourceError, match="nested too deeply"):
        rule_files.read("own.yml", "groups: " + "[" * 5000)


@pytest.mark.parametrize("text", BROKEN)
def test_some_promtool_refuses_the_same_files(tmp_path: Path, text: str) -> None:
    """Some: Prometheus 3 takes any text for a name, 2.x does not."""
    file = tmp_path / "own.yml"
    file.write_text(text, encoding="utf-8")
    promtools = tools.all_versions("promtool")
    assert promtools, tools.missing("promtool")
    checks = [
        subprocess.run([each.path, "check", "rules", file], capture_output=True, check=False) for each in promtools
    ]
    assert any(check.returncode for check in checks)


@pytest.mark.parametrize("wait", ["0", "0s", "0h0m", "10ms", "1h30m", "292y"])
def test_a_duration_that_every_promtool_takes_is_taken(tmp_path: Path, wait: str) -> None:
    file = tmp_path / "own.yml"
    file.write_text(f"groups: [{{name: a, interval: {wait}, rules: [{{alert: a, expr: up, for: {wait}}}]}}]")
    for promtool in tools.all_versions("promtool"):
        subprocess.run([promtool.path, "check", "rules", file], capture_output=True, check=True)
    [written] = rule_files.read("own.yml", file.read_text())
    assert written.rule
    is_zero = not wait.strip("0hms")
    assert (written.rule.delay == timedelta(), written.rule.interval == INTERVAL) == (is_zero, is_zero)


LIMITS = {
    **dict.fromkeys(["0", "5", "-1", "+5", "0x10", "0o7", "010", "08", "1_000", "1.5", "1e3", "!!int '5'", ""], True),
    **dict.fromkeys(["9223372036854775807", "1e18", "~", "null"], True),
    **dict.fromkeys(["abc", "'5'", '""', "[1]", "{}", "true", "1:30", ".inf", ".nan", "nan", "inf", "_5"], False),
    **dict.fromkeys(["9223372036854775808", "1e30", "2026-01-01", "5m", "٣"], False),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_is_taken_where_every_promtool_takes_it(tmp_path: Path, limit: str) -> None:
    file = tmp_path / "own.yml"
    file.write_text(f"groups:\n- name: a\n  limit: {limit}\n  rules:\n  - {{record: 'a:b', expr: up}}\n")
    promtools = tools.all_versions("promtool")
    assert promtools, tools.missing("promtool")
    for promtool in promtools:
        check = subprocess.run([promtool.path, "check", "rules", file], capture_output=True, check=False)
        assert (check.returncode == 0) is LIMITS[limit], str(promtool)
    if LIMITS[limit]:
        assert rule_files.read("own.yml", file.read_text())
        return
    with pytest.raises(SourceError, match="limit is no number"):
        rule_files.read("own.yml", file.read_text())


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "groups:\n", "groups: []\n", "groups: [{name: a}]\n"])
def test_a_rule_file_without_rules_is_no_problem(text: str) -> None:
    assert lint({"own.yml": text}, known()) == ()


def test_a_board_that_is_no_json_is_refused() -> None:
    [problem] = lint({"b.json": "{\n  panels\n}"}, known())
    assert (problem.rule, problem.position.line, problem.position.column) == ("file", 2, 3)


def test_an_expression_that_does_not_parse_is_a_problem() -> None:
    [problem] = lint({"a.md": "```promql\nsum(up\n```\n"}, known())
    assert (problem.rule, problem.message) == ("syntax", "unclosed left parenthesis")
