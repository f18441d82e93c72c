"""Chooses the replica for the next request: the least busy one of those that answer. Pure: the time is passed in."""

import random
from collections.abc import Collection, Sequence

_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 8.0
_REJECTION_WEIGHS = 2.0  # seconds


class Balancer:
    """Counts requests in flight, and leaves replicas alone for a while that do not answer."""

    def __init__(self, replicas: Sequence[str], chance: random.Random) -> None:
        self._in_flight = dict.fromkeys(replicas, 0)
        self._rejections: dict[str, list[float]] = {name: [] for name in replicas}
        self._failures = dict.fromkeys(replicas, 0)
        self._paused_until = dict.fromkeys(replicas, 0.0)
        self._chance = chance

    def choose(self, now: float, tried: Collection[str] = ()) -> str | None:
        """Name a replica, chance deciding between equals; None when none is left to try."""
        candidates = [name for name in self._in_flight if name not in tried and self._paused_until[name] <= now]
        self._chance.shuffle(candidates)
        return min(candidates, key=lambda name: self._load(name, now), default=None)

    def sent(self, name: str) -> None:
        """Note a request that starts."""
        self._in_flight[name] += 1

    def ended(self, name: str) -> None:
        """Note a request that is over, in whatever way."""
        self._in_flight[name] -= 1

    def answered(self, name: str) -> None:
        """Note that a replica answers: whatever was wrong with it is over."""
        self._failures[name] = 0

    def rejected(self, name: str, now: float) -> None:
        """Note a rejection; it weighs like a request in flight, or a replica that rejects all would attract all."""
        self._rejections[name].append(now + _REJECTION_WEIGHS)

    def unreachable(self, name: str, now: float) -> None:
        """Leave a replica alone, twice as long each time."""
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** self._failures[name])
        if self._paused_until[name] <= now:  # requests that fail together count once
            self._failures[name] = min(self._failures[name] + 1, 10)
            self._paused_until[name] = now + pause

    def _load(self, name: str, now: float) -> int:
        recent = [until for until in self._rejections[name] if until > now]
        self._rejections[name] = recent
        return self._in_flight[name] + len(recent)
