"""Lint: expressions that Prometheus accepts and answers with nothing, or with nonsense.

In: rule files, boards, runbooks, and the catalogue. Out: problems with place, message and fix. promtool judges syntax;
this judges meaning: each check of `prometheus.lint.checks` is a mistake met in the field.

    text ──reading──► tree ──infer (vocabulary, recorded)──► meanings ──checks──► problems
"""

from prometheus.lint.linting import SUFFIXES, lint, vocabulary
from prometheus.lint.problem import Position, Problem, Severity

__all__ = ["SUFFIXES", "Position", "Problem", "Severity", "lint", "vocabulary"]
