"""Alert states: when an alert is pending, fires and resolves, from the moments at which its expression had a sample.

In: the moments of evaluation and those with a sample. Out: `Firing` objects. The states are those of Prometheus' rule
manager: pending from the first sample, firing once `for` has passed without a gap, resolved at the first evaluation
without a sample after `keep_firing_for`.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

__all__ = ["Firing", "replay"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """An alert that fired. `resolved` is None if it still does at the end."""

    pending: float
    firing: float
    resolved: float | None


def replay(moments: Iterable[float], present: Collection[float], delay: float, keep: float) -> Iterator[Firing]:
    """Yield what fired; all times in seconds, `moments` ascending, `present` among them."""
    pending = firing = absent = None
    for now in moments:
        if now in present:
            absent = None
            pending = now if pending is None else pending
            if firing is None and now - pending >= delay:
                firing = now
        elif pending is not None:
            absent = now if absent is None else absent
            if firing is None:
                pending = None
            elif now - absent >= keep:
                yield Firing(pending=pending, firing=firing, resolved=now)
                pending = firing = None
            absent = None if pending is None else absent
    if firing is not None and pending is not None:
        yield Firing(pending=pending, firing=firing, resolved=None)
