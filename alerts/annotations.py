"""Annotations: pieces of Prometheus templates that put numbers into the text of an alert.

In: expressions about the alert's model or replica, settings of the fleet. Out: template text. Values never enter
labels: a label that changes is another alert.
"""

from collections.abc import Callable
from typing import TypeVar

from exporter.catalogue import MODEL, REPLICA, Label
from exporter.objectives import Objectives, Slos
from prometheus.partition import partition
from prometheus.promql import Expr, Matcher

__all__ = ["MODEL_NAME", "REPLICA_NAME", "THIS_MODEL", "THIS_REPLICA", "choose", "each", "number"]

Value = TypeVar("Value")

_ARGUMENT = "%[1]q"  # Go quotes the label's value there
THIS_MODEL = Matcher.equal(MODEL, _ARGUMENT)
THIS_REPLICA = Matcher.equal(REPLICA, _ARGUMENT)
MODEL_NAME = f"{{{{ $labels.{MODEL.name} }}}}"
REPLICA_NAME = f"{{{{ $labels.{REPLICA.name} }}}}"


def number(expr: Expr, show: str, *, of: Label = MODEL) -> str:
    """Look a number up when the alert fires; `show` is a template function such as humanizePercentage."""
    return f"{{{{ with {_query(expr, of)} }}}}{{{{ . | first | value | {show} }}}}{{{{ else }}}}unknown{{{{ end }}}}"


def each(expr: Expr, label: Label, *, of: Label = MODEL) -> str:
    """List the samples of an expression as `3 unreachable, 1 loading`, named by one of its labels."""
    comma = "{{ if $index }}, {{ end }}"
    sample = f"{{{{ $sample.Value }}}} {{{{ $sample.Labels.{label.name} }}}}"
    return f"{{{{ range $index, $sample := {_query(expr, of)} }}}}{comma}{sample}{{{{ end }}}}"


def _query(expr: Expr, of: Label) -> str:
    text = expr.text().replace(f'"{_ARGUMENT}"', _ARGUMENT)
    return f"query (printf `{text}` $labels.{of.name})"


def choose(slos: Slos, setting: Callable[[Objectives], Value], show: Callable[[Value], str]) -> str:
    """Print a setting of the alert's model."""
    default, *others = partition(slos, setting)
    branches = [(part, " ".join(_go_text(model) for model in part.matchers[0].values)) for part in others]
    text = show(default.value)
    for part, models in reversed(branches):
        text = f"{{{{ if eq $labels.{MODEL.name} {models} }}}}{show(part.value)}{{{{ else }}}}{text}{{{{ end }}}}"
    return text


def _go_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
