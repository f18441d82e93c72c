"""What PromQL may name, and whether Prometheus reads it. In: expressions; out: names, complaints."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import yaml

from alerts import evidence, objectives
from exporter.catalogue import METRICS, Kind
from exporter.objectives import Slos
from prometheus import hardware, indicators, recording
from running.tools import Tool

__all__ = ["known_series", "series_of", "unparsed"]

_NAME = re.compile(r"\b(?:llm_\w+|[a-z_]+:[\w:]+|ALERTS|(?:prometheus|alertmanager)_\w+)\b")
_QUOTED = re.compile(r'"[^"]*"')


def known_series() -> set[str]:
    """Answer every series of ours that exists: scraped, recorded, and Prometheus' record of alerts."""
    recorded_by = (indicators, objectives, evidence)
    groups = (
        *(group for stage in recorded_by for group in stage.groups(Slos())),
        *recording.groups(),
        *hardware.groups(),
    )
    recorded = {rule.recorded.name for group in groups for rule in group.rules}
    plain = {metric.name for metric in METRICS if metric.kind is not Kind.HISTOGRAM}
    parts = {
        name
        for metric in METRICS
        if metric.kind is Kind.HISTOGRAM
        for name in (metric.bucket, metric.count, metric.sum)
    }
    return recorded | plain | parts | {"ALERTS"}


def series_of(expression: str) -> set[str]:
    """Answer the series that an expression names."""
    return set(_NAME.findall(_QUOTED.sub("", expression)))


def unparsed(promtool: Tool, expressions: Iterable[str], directory: Path) -> str:
    """Answer what promtool says against the expressions, put into one rule file; empty when it reads them all."""
    rules = [{"record": "parsed:query", "expr": expression} for expression in expressions]
    file = directory / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    command = [str(promtool.path), "check", "rules", "--lint=none", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""
