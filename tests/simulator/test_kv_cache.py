"""KV blocks: what is held, what is shared, what is evicted."""

from hypothesis import given
from hypothesis import strategies as st

from simulator.kv_cache import KVCache, block_hashes

WORDS = [f"w{index}" for index in range(48)]
PREFIX = block_hashes(WORDS, 16)


def test_equal_prefixes_have_equal_hashes_and_a_difference_changes_all_that_follow() -> None:
    changed = block_hashes([*WORDS[:16], "other", *WORDS[17:]], 16)
    assert changed[0] == PREFIX[0]
    assert changed[1] != PREFIX[1]
    assert changed[2] != PREFIX[2]


def test_a_block_that_is_not_full_is_not_shared() -> None:
    assert len(block_hashes(WORDS[:47], 16)) == 2


def test_a_finished_prompt_stays_cached_but_counts_as_free() -> None:
    kv = KVCache(blocks=10, block_size=16)
    assert kv.admit("a", PREFIX, 0, 48)
    kv.share_prompt("a", PREFIX)
    kv.release("a")
    assert kv.free == 10
    assert kv.usage == 0
    assert kv.cached_prefix(PREFIX, 60) == 48


def test_one_token_is_always_left_to_compute() -> None:
    kv = KVCache(blocks=10, block_size=16)
    kv.admit("a", PREFIX, 0, 48)
    kv.share_prompt("a", PREFIX)
    assert kv.cached_prefix(PREFIX, 48) == 32


def test_a_shared_prefix_is_held_once() -> None:
    kv = KVCache(blocks=10, block_size=16)
    kv.admit("a", PREFIX, 0, 48)
    kv.share_prompt("a", PREFIX)
    kv.admit("b", PREFIX, 32, 48)
    assert kv.usage == 0.4


def test_cached_blocks_make_room_for_whoever_needs_it() -> None:
    kv = KVCache(blocks=4, block_size=16)
    kv.admit("a", PREFIX, 0, 48)
    kv.share_prompt("a", PREFIX)
    kv.release("a")
    assert kv.admit("b", (), 0, 64)
    assert kv.cached_prefix(PREFIX, 60) == 0


def test_no_room_takes_nothing() -> None:
    kv = KVCache(blocks=4, block_size=16)
    assert not kv.admit("a", (), 0, 65)
    assert kv.free == 4


def test_withheld_blocks_count_as_used() -> None:
    kv = KVCache(blocks=10, block_size=16)
    kv.withheld = 8
    assert kv.usage == 0.8
    assert not kv.admit("a", (), 0, 33)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 90), st.booleans()), max_size=60))
def test_blocks_are_neither_lost_nor_invented(steps: list[tuple[int, int, bool]]) -> None:
    kv = KVCache(blocks=12, block_size=16)
    held: set[str] = set()
    for who, tokens, leaves in steps:
        name = str(who)
        if name in held and leaves:
            kv.release(name)
            held.discard(name)
        elif name in held:
            kv.grow(name, tokens)
        elif kv.admit(name, PREFIX[: tokens // 16], kv.cached_prefix(PREFIX[: tokens // 16], tokens), tokens):
            kv.share_prompt(name, PREFIX[: tokens // 16])
            held.add(name)
        assert 0 <= kv.free <= 12
    for name in held:
        kv.release(name)
    assert kv.free == 12
