"""Partition: models that share a setting share a rule, and every model belongs to exactly one part.

In: the objectives of the fleet and the setting in question. Out: the distinct values, each with its model matcher.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from exporter.catalogue import MODEL
from exporter.objectives import Objectives, Slos
from prometheus.promql import Matcher

__all__ = ["Part", "partition"]

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Generic[Value]):
    """The models that have one value of a setting; `matchers` select them, none means all models."""

    value: Value
    matchers: tuple[Matcher, ...]


def partition(slos: Slos, setting: Callable[[Objectives], Value]) -> tuple[Part[Value], ...]:
    """Group models by a setting of their objectives.

    The first part has the default and takes every model not named otherwise, those learned at run time included.
    """
    default = setting(slos.default)
    others: dict[Value, list[str]] = {}
    for model in sorted(slos.models):
        value = setting(slos.models[model])
        if value != default:
            others.setdefault(value, []).append(model)
    named = sorted(model for models in others.values() for model in models)
    rest = (Matcher.outside(MODEL, named),) if named else ()
    return (
        Part(value=default, matchers=rest),
        *(Part(value=value, matchers=(Matcher.among(MODEL, models),)) for value, models in others.items()),
    )
