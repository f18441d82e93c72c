"""Partition: models that share a setting share a rule, and every model belongs to exactly one part.

In: a table of settings per model (objectives, thresholds) and the setting in question. Out: the distinct values, each
with its model matcher.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from exporter.catalogue import MODEL
from prometheus.promql import Matcher

__all__ = ["Both", "Part", "Table", "partition"]

Value = TypeVar("Value")
Settings_co = TypeVar("Settings_co", covariant=True)


class Table(Protocol[Settings_co]):
    """Settings of all models: `default`, and those of the models that differ from it."""

    @property
    def default(self) -> Settings_co:
        """What holds for every model not named otherwise."""

    @property
    def models(self) -> Mapping[str, Settings_co]:
        """What holds for the models named."""


First_co = TypeVar("First_co", covariant=True)
Second_co = TypeVar("Second_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Both(Generic[First_co, Second_co]):
    """Two tables read as one, whose settings are pairs."""

    first: Table[First_co]
    second: Table[Second_co]

    @property
    def default(self) -> tuple[First_co, Second_co]:
        """What holds for every model not named otherwise."""
        return self.first.default, self.second.default

    @property
    def models(self) -> Mapping[str, tuple[First_co, Second_co]]:
        """What holds for the models that either table names."""
        return {
            model: (
                self.first.models.get(model, self.first.default),
                self.second.models.get(model, self.second.default),
            )
            for model in sorted({*self.first.models, *self.second.models})
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Generic[Value]):
    """The models that have one value of a setting; `matchers` select them, none means all models."""

    value: Value
    matchers: tuple[Matcher, ...]


def partition(table: Table[Settings_co], setting: Callable[[Settings_co], Value]) -> tuple[Part[Value], ...]:
    """Group models by one of their settings.

    The first part has the default and takes every model not named otherwise, those learned at run time included.
    """
    default = setting(table.default)
    others: dict[Value, list[str]] = {}
    for model in sorted(table.models):
        value = setting(table.models[model])
        if value != default:
            others.setdefault(value, []).append(model)
    named = sorted(model for models in others.values() for model in models)
    rest = (Matcher.outside(MODEL, named),) if named else ()
    return (
        Part(value=default, matchers=rest),
        *(Part(value=value, matchers=(Matcher.among(MODEL, models),)) for value, models in others.items()),
    )
