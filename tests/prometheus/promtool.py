"""Runs promtool's unit tests on the generated rules: in, a table of cases; out, nothing, or what promtool says.

Two versions of Prometheus disagree on samples that lie exactly on the left edge of a window (2.x counts them, 3.x does
not), so cases ask a little before and a little after a moment, never at it.
"""

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from alerts.render import artefacts as alert_files
from exporter.fleet import Fleet
from prometheus.deployment import Deployment
from prometheus.render import artefacts as prometheus_files
from running.tools import Tool

Series = Mapping[str, str]
Group = dict[str, Any]
"""A group of rules as its file has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """At a moment, an expression has exactly these samples: series text -> value."""

    at: str
    expr: str
    samples: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What goes in, sample by sample every `every`, and what must come out."""

    claim: str
    series: Series
    expect: Sequence[Expect]
    every: str = "10s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules generated for a fleet, evaluated every `evaluate`.

    Only groups whose names start with one of `stages` count, in that order; promtool would take another one.
    """

    fleet: Fleet
    stages: Sequence[str]
    evaluate: str = "10s"

    def groups(self) -> list[Group]:
        """Read the groups, without annotations, whose queries would take most of the time."""
        files = {**prometheus_files(self.fleet, Deployment()), **alert_files(self.fleet, Deployment())}
        documents = [yaml.load(text, yaml.CSafeLoader) for path, text in files.items() if "/rules/" in path]
        groups = [group for document in documents for group in document["groups"]]
        for group in groups:
            for rule in group["rules"]:
                rule.pop("annotations", None)
        kept = [group for group in groups if group["name"].startswith(tuple(self.stages))]
        return sorted(kept, key=lambda g: next(i for i, s in enumerate(self.stages) if g["name"].startswith(s)))


def samples(*phases: tuple[int, float | None], start: float = 0) -> str:
    """Write a counter: each phase is a number of samples and how much each adds; None is a scrape that failed."""
    value, written = start, [f"{start:g}"]
    for count, increment in phases:
        for _ in range(count):
            value += increment or 0
            written.append("_" if increment is None else f"{value:.10g}")
    return " ".join(written)


def run(promtool: Tool, directory: Path, generated: Rules, cases: Iterable[Case]) -> None:
    """Fail with promtool's words unless every case holds."""
    result = judge(promtool, directory, generated.groups(), generated.evaluate, cases)
    assert result.returncode == 0, f"{promtool}\n{result.stdout[-6000:]}{result.stderr[-6000:]}"


def judge(
    promtool: Tool, directory: Path, groups: Sequence[Group], evaluate: str, cases: Iterable[Case]
) -> subprocess.CompletedProcess[str]:
    """Let promtool evaluate the groups in their order, every `evaluate`, and answer what it says."""
    rules, test = directory / "rules.yml", directory / "test.yml"
    _dump(rules, {"groups": groups})
    document = {
        "rule_files": [str(rules)],
        "evaluation_interval": evaluate,
        "group_eval_order": [group["name"] for group in groups],
        "tests": [_document(case) for case in cases],
    }
    _dump(test, document)
    return subprocess.run([promtool.path, "test", "rules", test], capture_output=True, text=True, check=False)


def _dump(path: Path, document: object) -> None:
    """Write JSON, which is YAML, and much faster to write."""
    path.write_text(json.dumps(document), encoding="utf-8")


def _document(case: Case) -> dict[str, object]:
    return {
        "name": case.claim,
        "interval": case.every,
        "input_series": [{"series": name, "values": values} for name, values in case.series.items()],
        "promql_expr_test": [
            {
                "expr": each.expr,
                "eval_time": each.at,
                "exp_samples": [{"labels": labels, "value": value} for labels, value in each.samples.items()],
            }
            for each in case.expect
        ],
    }
