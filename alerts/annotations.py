"""Annotations: pieces of Prometheus templates that put numbers into the text of an alert.

In: expressions about the alert's model or replica, settings of the fleet. Out: template text. Values never enter
labels: a label that changes is another alert.
"""

from collections.abc import Callable
from typing import TypeVar

from exporter.catalogue import MODEL, REPLICA, REPLICA_UP, Label
from prometheus.partition import Table, partition
from prometheus.promql import Expr, Matcher, quoted
from prometheus.series import select
from prometheus.stack import INSTANCE

__all__ = [
    "MODEL_NAME",
    "OF_MODEL",
    "REPLICA_AND_ADDRESS",
    "REPLICA_NAME",
    "THIS_MODEL",
    "THIS_REPLICA",
    "choose",
    "counts",
    "duration",
    "name",
    "number",
    "percentage",
]

Value = TypeVar("Value")
Settings = TypeVar("Settings")

_ARGUMENT = "%[1]q"  # Go quotes the label's value there
THIS_MODEL = Matcher.equal(MODEL, _ARGUMENT)
THIS_REPLICA = Matcher.equal(REPLICA, _ARGUMENT)
MODEL_NAME = f"{{{{ $labels.{MODEL.name} }}}}"
REPLICA_NAME = f"{{{{ $labels.{REPLICA.name} }}}}"
OF_MODEL = f"{{{{ with $labels.{MODEL.name} }}}}{{{{ . }}}}: {{{{ end }}}}"
"""The model before what is said about one of its replicas, which may not have told it yet."""


def percentage(share: Expr, *, otherwise: str, decimals: int = 0) -> str:
    """Look up a share of 0 to 1 when the alert fires and print it as a percentage, or `otherwise` if there is none."""
    shown = f'{{{{ . | first | value | printf "%.{decimals}f%%" }}}}'
    return f"{{{{ with {_query(share * 100, MODEL)} }}}}{shown}{{{{ else }}}}{otherwise}{{{{ end }}}}"


def duration(seconds: Expr, *, before: str, after: str) -> str:
    """Look up a number of seconds when the alert fires and print it as `3h 20m 0s` between two texts; or nothing."""
    shown = f"{before}{{{{ . | first | value | humanizeDuration }}}}{after}"
    return f"{{{{ with {_query(seconds, MODEL)} }}}}{shown}{{{{ end }}}}"


def number(expr: Expr, *, before: str, after: str) -> str:
    """Look up a number about the model when the alert fires and print it between two texts; or nothing."""
    return f"{{{{ with {_query(expr, MODEL)} }}}}{before}{{{{ . | first | value }}}}{after}{{{{ end }}}}"


def name(expr: Expr, label: Label, *, of: Label) -> str:
    """Look up which value a label has on the only sample of an expression."""
    shown = f'{{{{ . | first | label "{label.name}" }}}}'
    return f"{{{{ with {_query(expr, of)} }}}}{shown}{{{{ else }}}}unknown{{{{ end }}}}"


def counts(expr: Expr, label: Label) -> str:
    """List the samples of an expression as `3 unreachable, 1 loading`, named by one of its labels."""
    comma = "{{ if $index }}, {{ end }}"
    sample = f"{{{{ $sample.Value }}}} {{{{ $sample.Labels.{label.name} }}}}"
    samples = f'{_query(expr, MODEL)} | sortByLabel "{label.name}"'
    return f"{{{{ range $index, $sample := {samples} }}}}{comma}{sample}{{{{ end }}}}"


def _query(expr: Expr, of: Label) -> str:
    text = expr.text().replace(f'"{_ARGUMENT}"', _ARGUMENT)
    return f"query (printf `{text}` $labels.{of.name})"


_ADDRESS = f'{{{{ . | first | label "{INSTANCE.name}" }}}}'
REPLICA_AND_ADDRESS = (
    f"{REPLICA_NAME}{{{{ with {_query(select(REPLICA_UP, THIS_REPLICA), REPLICA)} }}}} ({_ADDRESS}){{{{ end }}}}"
)
"""A replica and its host:port in brackets, if it is scraped: whoever is woken may not know where a name runs."""


def choose(table: Table[Settings], setting: Callable[[Settings], Value], show: Callable[[Value], str]) -> str:
    """Print a setting of the alert's model. Templates quote as PromQL does, both being Go's way."""
    default, *others = partition(table, setting)
    branches = [(part, " ".join(map(quoted, part.matchers[0].values))) for part in others]
    text = show(default.value)
    for part, models in reversed(branches):
        text = f"{{{{ if eq $labels.{MODEL.name} {models} }}}}{show(part.value)}{{{{ else }}}}{text}{{{{ end }}}}"
    return text
