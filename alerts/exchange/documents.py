"""Documents: YAML with exact decimals, one document after another.

In: plain mappings, or text. Out: text, or `Node`s that know their document. A number such as 0.9995 becomes a Decimal
and is written as one: as a float it would bring its error along.
"""

from collections.abc import Hashable, Iterable
from decimal import Decimal, InvalidOperation
from typing import Any

import yaml

from exporter.document import FleetError, Node
from prometheus.promql import number_text

__all__ = ["read", "write"]


class _Dumper(yaml.SafeDumper):
    """Writes decimals exactly, and never an alias."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401 - PyYAML's signature
        """Write equal values twice: people read this."""
        del data
        return True


def _represent(dumper: yaml.SafeDumper, number: Decimal) -> yaml.ScalarNode:
    kind = "int" if number == int(number) else "float"
    return dumper.represent_scalar(f"tag:yaml.org,2002:{kind}", number_text(number))


_Dumper.add_representer(Decimal, _represent)


class _Loader(yaml.SafeLoader):
    """Reads numbers exactly, and refuses a key given twice and a value that is not what it looks like."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002 - PyYAML's
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, KeyError, AttributeError):  # of dates such as 2026-13-99, `!!bool`, `!!timestamp`
            problem = "no number and no date; put it in quotes if it is text"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        keys = [key.value for key, _ in node.value]
        for key, _ in node.value:
            if keys.count(key.value) > 1:
                raise yaml.MarkedYAMLError(problem=f"key {key.value!r} is given twice", problem_mark=key.start_mark)
        return super().construct_mapping(node, deep=deep)


def _exact(_: yaml.SafeLoader, node: yaml.ScalarNode) -> Decimal:
    try:
        return Decimal(str(node.value).replace("_", ""))
    except InvalidOperation:
        raise yaml.MarkedYAMLError(problem=f"{node.value} is no plain number", problem_mark=node.start_mark) from None


_Loader.add_constructor("tag:yaml.org,2002:float", _exact)


def write(documents: Iterable[dict[str, Any]]) -> str:
    """Print documents, one after another."""
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)


def read(text: str, file: str) -> tuple[Node, ...]:
    """Read documents; each knows its number and what it is. Raises FleetError for what is no YAML."""
    try:
        values = [value for value in yaml.load_all(text, Loader=_Loader) if value is not None]
    except yaml.YAMLError as error:
        raise FleetError(f"{file}: not YAML: {error}") from error
    except RecursionError:
        raise FleetError(f"{file}: not OpenSLO: nested too deeply") from None
    return tuple(Node(value=value, file=f"{file}: {_called(value, n)}") for n, value in enumerate(values, start=1))


def _called(value: Any, number: int) -> str:  # noqa: ANN401 - YAML
    if not isinstance(value, dict) or not isinstance(value.get("metadata"), dict):
        return f"document {number}"
    return f"document {number} ({value.get('kind')} {value['metadata'].get('name')})"
