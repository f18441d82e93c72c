"""Runs promtool's unit tests on the generated rules: in, a table of cases; out, nothing, or what promtool says.

Two versions of Prometheus disagree on samples that lie exactly on the left edge of a window (2.x counts them, 3.x does
not), so cases ask a little before and a little after a moment, never at it.
"""

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


def firing(at: str, alertname: str, *labels: str) -> Expect:
    """Expect the alert to fire once per label set given, and no more."""
    expr = f'sum without (slo) (ALERTS{{alertname="{alertname}",alertstate="firing"}})'
    start = f'{{alertname="{alertname}",alertstate="firing"'
    return Expect(at=at, expr=expr, samples={f"{start},{each}}}": 1 for each in labels})


def quiet(at: str, alertname: str) -> Expect:
    """Expect the alert not to fire."""
    return firing(at, alertname)


def samples(*phases: tuple[int, float | None], start: float = 0) -> str:
    """Write a counter: each phase is a number of samples and how much each adds; None is a scrape that failed."""
    value, written = start, [f"{start:g}"]
    for count, increment in phases:
        for _ in range(count):
            value += increment or 0
            written.append("_" if increment is None else f"{value:.10g}")
    return " ".join(written)


def run(
    promtool: Tool,
    directory: Path,
    fleet: Fleet,
    cases: Iterable[Case],
    *,
    stages: Sequence[str],
    evaluate: str = "10s",
) -> None:
    """Fail with promtool's words unless every case holds on the rules generated for the fleet.

    Only groups whose names start with one of `stages` are evaluated, in that order; promtool would take another one.
    """
    groups = sorted(
        (group for group in _groups(fleet) if group["name"].startswith(tuple(stages))),
        key=lambda group: next(i for i, stage in enumerate(stages) if group["name"].startswith(stage)),
    )
    rules, test = directory / "rules.yml", directory / "test.yml"
    _dump(rules, {"groups": groups})
    document = {
        "rule_files": [str(rules)],
        "evaluation_interval": evaluate,
        "group_eval_order": [group["name"] for group in groups],
        "tests": [_document(case) for case in cases],
    }
    _dump(test, document)
    result = subprocess.run([promtool.path, "test", "rules", test], capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{promtool}\n{result.stdout[-6000:]}{result.stderr[-6000:]}"


def _groups(fleet: Fleet) -> list[dict[str, Any]]:
    """Read the generated groups without annotations, whose queries would take most of the time."""
    files = {**prometheus_files(fleet, Deployment()), **alert_files(fleet, Deployment())}
    groups = [group for path, text in files.items() if "/rules/" in path for group in yaml.safe_load(text)["groups"]]
    for group in groups:
        for rule in group["rules"]:
            rule.pop("annotations", None)
    return groups


def _dump(path: Path, document: object) -> None:
    path.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1_000_000), encoding="utf-8")


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
