"""Grafana's own schema as a judge. In: our JSON; out: sentences, one per place where it disagrees.

grafana-foundation-sdk is generated from Grafana's schemas. Reading our JSON into its classes and writing it again loses
every key that Grafana does not know, and its annotations say what each value has to be.
"""

import enum
import json
import types
import typing
import warnings
from collections.abc import Iterator
from typing import Any, Protocol, Self

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins

with warnings.catch_warnings():
    # It would rather see the second version of the schema, which file provisioning of Grafana 12 does not read.
    warnings.simplefilter("ignore", DeprecationWarning)
    from grafana_foundation_sdk.models.dashboard import Dashboard, Panel

__all__ = ["Dashboard", "Panel", "disagreements"]

Json = dict[str, Any]

register_default_plugins()


class Schema(Protocol):
    """A class of the SDK."""

    @classmethod
    def from_json(cls, data: Json) -> Self: ...


def disagreements(ours: Json, schema: type[Schema]) -> list[str]:
    """Answer where our JSON and the schema's class disagree; empty when Grafana reads all of it as meant."""
    read = schema.from_json(ours)
    again = json.loads(JSONEncoder().encode(read))
    return [*_lost(ours, again, ""), *_mistyped(read, "")]


def _lost(ours: object, again: object, path: str) -> Iterator[str]:
    """Yield what the schema forgot or changed; defaults that it adds are no loss."""
    if isinstance(ours, dict) and isinstance(again, dict):
        for key, value in ours.items():
            if key not in again and value is not None:
                yield f"{path}.{key}: Grafana knows no such key"
            elif key in again:
                yield from _lost(value, again[key], f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(again, list):
        for index, (mine, theirs) in enumerate(zip(ours, again, strict=True)):
            yield from _lost(mine, theirs, f"{path}[{index}]")
    elif ours != again:
        yield f"{path}: {ours!r} comes back as {again!r}"


def _mistyped(thing: object, path: str) -> Iterator[str]:
    """Yield the attributes, however deep, that are not what their annotation says."""
    for name, hint in typing.get_type_hints(type(thing)).items():
        value = getattr(thing, name, None)
        if not _fits(value, hint):
            yield f"{path}.{name}: {value!r} is not {hint}"
        for index, part in enumerate(value if isinstance(value, list) else [value]):
            if hasattr(part, "to_json"):
                yield from _mistyped(part, f"{path}.{name}[{index}]")


def _fits(value: object, hint: Any) -> bool:  # noqa: ANN401 - an annotation may be anything
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, option) for option in arguments)
    if origin is list:
        return isinstance(value, list) and all(_fits(item, arguments[0]) for item in value)
    if origin is typing.Literal or (isinstance(hint, type) and issubclass(hint, enum.Enum)):
        return value in (arguments or {member.value for member in hint})
    if hint is Any or not isinstance(hint, type):
        return origin is None or isinstance(value, origin)
    accepted: tuple[type, ...] = (int, float) if hint is float else (hint,)
    if hasattr(hint, "from_json"):
        accepted = (hint, dict)  # the SDK leaves some lists of objects as they are
    return isinstance(value, accepted)
