"""Expected: the models of a fleet that have to be up, and those among them that nobody watches any more.

In: a `Fleet`. Out: matchers and an expression. A model whose `min_ready` is 0 may be off, so that nobody misses it;
replicas whose model nobody knows yet are no model.
"""

from datetime import timedelta

from exporter.catalogue import MODEL, STATE
from exporter.fleet import Fleet
from prometheus.promql import Expr, Matcher
from prometheus.recording import REPLICAS, REPLICAS_BY_STATE, REPLICAS_READY

__all__ = ["REMEMBERED", "known_models", "not_off", "unwatched"]

REMEMBERED = timedelta(days=1)
"""How long what has left the fleet is missed: until somebody has read a ticket of the night."""


def not_off(fleet: Fleet) -> tuple[Matcher, ...]:
    """Leave out the models that may be off."""
    off = sorted(model for model, policy in fleet.models.items() if policy.min_ready == 0)
    return (Matcher.outside(MODEL, off),) if off else ()


def known_models(fleet: Fleet) -> tuple[Matcher, ...]:
    """Select the models that are known and may not be off."""
    return (Matcher.unequal(MODEL, ""), *not_off(fleet))


def unwatched(fleet: Fleet) -> Expr:
    """Count the replicas of models that have none any more: those that were ready at once, less those drained at once.

    Targets do not leave at the same moment, so the last look at a model may show any part of it; the largest does not.
    """
    known = known_models(fleet)
    ready = REPLICAS_READY.select(*known).over_time("max", REMEMBERED)
    draining = REPLICAS_BY_STATE.select(Matcher.equal(STATE, "draining"), *known).over_time("max", REMEMBERED)
    return (ready - draining.aggregate("max", MODEL)).compare(">", 0).without(REPLICAS.select())
