"""Rivals: what other teams would have been told on the same data. In: our rules. Out: alerts over the same series.

- the textbook windows alone: 14.4 over 1h and 5m, 6 over 6h and 30m, for every objective, without floor or cap
- the usual threshold alert: p95 above the objective's threshold for 5 minutes, which is to say: fewer than 95 % of the
  requests of the last 5 minutes were within it; more than 5 % failed for 5 minutes; nobody ready for 5 minutes
"""

from collections.abc import Iterator

from drills.backtest.inline import Question, Rules
from exporter.catalogue import REPLICA_STATE

__all__ = ["TEXTBOOK", "THRESHOLD", "rivals"]

TEXTBOOK = "textbook windows alone"
THRESHOLD = "threshold for 5 minutes"
_SLOS = ("ttft", "itl", "availability")
_INTERVAL = 10.0
_FIVE_MINUTES = 300.0


def rivals(rules: Rules) -> Iterator[Question]:
    """Yield the rival alerts."""
    for slo in _SLOS:
        burn = {window: f'model:llm_slo_burn:rate{window}{{slo="{slo}"}}' for window in ("5m", "30m", "1h", "6h")}
        windows = f"{burn['1h']} > 14.4 and {burn['5m']} > 14.4 or {burn['6h']} > 6 and {burn['30m']} > 6"
        yield _question(rules, TEXTBOOK, windows, slo, 0)
        share = f"model:llm_{slo}_good:rate5m / model:llm_{slo}_total:rate5m"
        yield _question(rules, THRESHOLD, f"{share} < 0.95", slo, _FIVE_MINUTES)
    nobody = f'max by (model) (max_over_time({REPLICA_STATE.name}{{state="ready"}}[10s])) == 0'
    yield _question(rules, THRESHOLD, nobody, "down", _FIVE_MINUTES)


def _question(rules: Rules, name: str, expr: str, slo: str, delay: float) -> Question:
    sides = rules.branches(expr, _INTERVAL, whole=delay > 0)
    return Question(alert=name, labels={"severity": "page", "slo": slo}, branches=sides, delay=delay)
