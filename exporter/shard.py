"""Shard: which part of a fleet this exporter watches. In: a replica's name. Out: the number of its shard. Pure."""

import re
from dataclasses import dataclass
from hashlib import blake2b

__all__ = ["Shard", "jump", "shard_of"]

_FORM = re.compile(r"([0-9]{1,4})/([0-9]{1,4})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Number `number` of `count`, counted from 1; the only one of 1 watches everything."""

    number: int = 1
    count: int = 1

    @classmethod
    def read(cls, text: str) -> "Shard":
        """Read 2/3; raise ValueError with a sentence."""
        match = _FORM.fullmatch(text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise ValueError(f"expected i/n with i from 1 to n, such as 1/3, got {text!r}")
        return cls(number=int(match[1]), count=int(match[2]))

    def __str__(self) -> str:
        """Write it as it is read."""
        return f"{self.number}/{self.count}"

    def has(self, name: str) -> bool:
        """Tell whether a replica belongs to this shard."""
        return shard_of(name, self.count) == self.number


def shard_of(name: str, count: int) -> int:
    """Answer the shard of a name, from 1 to `count`.

    A name is on the same shard on every machine and in every version; with one shard more, each name stays or moves to
    the new one, so 1/(count + 1) of them move.
    """
    return jump(int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big"), count) + 1


def jump(key: int, count: int) -> int:
    """Answer the bucket of a key of 64 bits, from 0 to `count` - 1.

    Lamping and Veach, A Fast, Minimal Memory, Consistent Hash Algorithm, 2014: https://arxiv.org/abs/1406.2294
    """
    here, after = 0, 0
    while after < count:
        here = after
        key = (key * 2862933555777941757 + 1) % 2**64
        after = int((here + 1) * (2**31 / ((key >> 33) + 1)))
    return here
