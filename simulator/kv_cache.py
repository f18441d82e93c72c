"""KV cache of one replica: blocks that sequences hold, and prefixes that stay behind for the next prompt.

In: token counts and the hashes of a prompt's full blocks. Out: whether the blocks could be had, and the cached tokens.
As in vLLM, cached blocks that nobody holds count as free: they are evicted, oldest first, when somebody needs room.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence


def block_hashes(words: Sequence[str], block_size: int) -> tuple[int, ...]:
    """Chain one hash per full block, so that equal hashes mean equal prefixes."""
    hashes: list[int] = []
    chained = 0
    for start in range(0, len(words) - len(words) % block_size, block_size):
        chained = hash((chained, *words[start : start + block_size]))
        hashes.append(chained)
    return tuple(hashes)


class KVCache:
    """A fixed number of blocks, shared by sequences through their common prefixes."""

    def __init__(self, *, blocks: int, block_size: int) -> None:
        self.blocks = blocks
        self.block_size = block_size
        self.withheld = 0  # blocks a fault keeps from every sequence
        self._private: dict[str, int] = {}
        self._shared: dict[str, tuple[int, ...]] = {}
        self._cached: OrderedDict[int, int] = OrderedDict()  # block hash -> sequences that hold it
        self._in_use = 0

    @property
    def free(self) -> int:
        """Blocks that can be had now, evictable prefixes included; negative when a fault took too many."""
        return self.blocks - self.withheld - self._in_use

    @property
    def usage(self) -> float:
        """Share of the blocks that is taken, 0 to 1."""
        return min(1.0, (self._in_use + self.withheld) / self.blocks)

    def blocks_for(self, tokens: int) -> int:
        """Count the blocks that hold this many tokens."""
        return -(-tokens // self.block_size)

    def cached_prefix(self, hashes: Iterable[int], prompt_tokens: int) -> int:
        """Count the leading tokens of a prompt that are cached; at least one token is always left to compute."""
        found = 0
        for block in hashes:
            if block not in self._cached:
                break
            found += 1
        return min(found, (prompt_tokens - 1) // self.block_size) * self.block_size

    def admit(self, sequence: str, hashes: tuple[int, ...], cached_tokens: int, tokens: int) -> bool:
        """Give a new sequence its cached prefix and room up to `tokens`; False, and nothing taken, if there is none."""
        prefix = hashes[: cached_tokens // self.block_size]
        revived = sum(1 for block in prefix if self._cached[block] == 0)
        fresh = self.blocks_for(tokens) - len(prefix)
        if revived + fresh > self.free:
            return False
        for block in prefix:
            self._cached[block] += 1
            self._cached.move_to_end(block)
        self._shared[sequence] = prefix
        self._private[sequence] = fresh
        self._in_use += revived + fresh
        self._evict()
        return True

    def grow(self, sequence: str, tokens: int) -> bool:
        """Extend a sequence to `tokens`; False when no block is left for it."""
        more = self.blocks_for(tokens) - len(self._shared[sequence]) - self._private[sequence]
        if more <= 0:
            return True
        if more > self.free:
            return False
        self._private[sequence] += more
        self._in_use += more
        self._evict()
        return True

    def share_prompt(self, sequence: str, hashes: tuple[int, ...]) -> None:
        """Offer the computed prompt of a sequence to later ones."""
        held = self._shared[sequence]
        fresh: list[int] = []
        for block in hashes[len(held) :]:
            if block in self._cached:
                break  # another sequence computed the same prefix meanwhile; this copy stays private
            self._cached[block] = 1
            fresh.append(block)
        self._shared[sequence] = (*held, *fresh)
        self._private[sequence] -= len(fresh)

    def release(self, sequence: str) -> None:
        """Take back the blocks of a sequence; its prefix stays cached until somebody needs the room."""
        self._in_use -= self._private.pop(sequence)
        for block in self._shared.pop(sequence):
            self._cached[block] -= 1
            if self._cached[block] == 0:
                self._in_use -= 1
                self._cached.move_to_end(block)

    def _evict(self) -> None:
        private = sum(self._private.values())
        surplus = private + len(self._cached) - (self.blocks - self.withheld)
        if surplus <= 0:
            return
        idle = [block for block, holders in self._cached.items() if holders == 0]
        for block in idle[:surplus]:
            del self._cached[block]
