"""Promises: the objectives of a fleet one by one, each with the series that tell whether it is kept.

In: a `Fleet`. Out: `Service`s, one per model that is named somewhere and one for every other model.
"""

import re
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from hashlib import sha256

from exporter.catalogue import MODEL
from exporter.fleet import Fleet
from exporter.objectives import LatencyObjective, Objectives
from prometheus.indicators import INDICATORS, Indicator
from prometheus.promql import Expr, Matcher
from prometheus.series import Recorded

__all__ = ["OTHERS", "Promise", "Service", "services"]

OTHERS = "every-other-model"
"""Name of the service of the models that fleet.yml does not name."""

_LONGEST = 40
"""Names are at most 63 characters; the name of an objective follows, and a digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """One objective; `threshold` where it is about a latency."""

    indicator: Indicator
    share: Decimal
    threshold: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What users of a model are promised; `model` is None for every model that is not named.

    `is_default`: fleet.yml says nothing of its own about the model.
    """

    name: str
    model: str | None
    named: tuple[str, ...]
    promises: tuple[Promise, ...]
    is_default: bool

    @property
    def title(self) -> str:
        """What a person calls the service."""
        return self.model or "every model that is not named"

    def select(self, recorded: Recorded) -> Expr:
        """Select a recorded series of the service; those of several models are added up."""
        if self.model is not None:
            return recorded.select(Matcher.equal(MODEL, self.model))
        others = (Matcher.outside(MODEL, self.named),) if self.named else ()
        return recorded.select(*others).aggregate("sum")


def services(fleet: Fleet) -> tuple[Service, ...]:
    """List the services of a fleet: every other model first, then the named ones."""
    slos = fleet.slos
    named = tuple(sorted({replica.model for replica in fleet.replicas if replica.model} | slos.models.keys()))
    others = Service(name=OTHERS, model=None, named=named, promises=_promises(slos.default), is_default=True)
    return (
        others,
        *(
            Service(
                name=_name(model),
                model=model,
                named=named,
                promises=_promises(slos.of(model)),
                is_default=model not in slos.models,
            )
            for model in named
        ),
    )


def _promises(objectives: Objectives) -> tuple[Promise, ...]:
    return tuple(_promise(indicator, objectives) for indicator in INDICATORS)


def _promise(indicator: Indicator, objectives: Objectives) -> Promise:
    objective = getattr(objectives, indicator.slo)
    threshold = objective.threshold if isinstance(objective, LatencyObjective) else None
    return Promise(indicator=indicator, share=indicator.objective(objectives), threshold=threshold)


def _name(model: str) -> str:
    """Write a model as a DNS label of two characters or more, as Sloth wants; a digest keeps changed ones apart."""
    plain = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")[:_LONGEST].strip("-")
    if plain == model and plain != OTHERS and len(plain) > 1:
        return plain
    return f"{plain or 'model'}-{sha256(model.encode()).hexdigest()[:8]}"
