"""Expected: the models of a fleet that have to be up.

In: a `Fleet`. Out: matchers. A model whose `min_ready` is 0 may be off, so that nobody misses it; replicas whose model
nobody knows yet are no model.
"""

from exporter.catalogue import MODEL
from exporter.fleet import Fleet
from prometheus.promql import Matcher

__all__ = ["known_models", "not_off"]


def not_off(fleet: Fleet) -> tuple[Matcher, ...]:
    """Leave out the models that may be off."""
    off = sorted(model for model, policy in fleet.models.items() if policy.min_ready == 0)
    return (Matcher.outside(MODEL, off),) if off else ()


def known_models(fleet: Fleet) -> tuple[Matcher, ...]:
    """Select the models that are known and may not be off."""
    return (Matcher.unequal(MODEL, ""), *not_off(fleet))
