"""The balancer prefers idle replicas, avoids dead ones, and is not drawn to those that reject."""

import random

from simulator.balancer import Balancer


def balancer() -> Balancer:
    return Balancer(("a", "b", "c"), random.Random(1))  # noqa: S311 - chance, not a secret


def test_the_least_busy_replica_is_chosen() -> None:
    pool = balancer()
    for name in ("a", "a", "b", "b", "c"):
        pool.sent(name)
    assert pool.choose(0.0) == "c"
    pool.ended("a")
    pool.ended("a")
    assert pool.choose(0.0) == "a"


def test_equals_are_chosen_by_chance() -> None:
    pool = balancer()
    assert {pool.choose(0.0) for _ in range(50)} == {"a", "b", "c"}


def test_a_replica_that_does_not_answer_is_left_alone_twice_as_long_each_time() -> None:
    pool = balancer()
    pool.unreachable("a", 0.0)
    assert "a" not in {pool.choose(0.9) for _ in range(50)}
    assert "a" in {pool.choose(1.0) for _ in range(50)}
    pool.unreachable("a", 1.0)
    assert "a" not in {pool.choose(2.9) for _ in range(50)}
    assert "a" in {pool.choose(3.0) for _ in range(50)}


def test_requests_that_fail_together_count_once() -> None:
    pool = balancer()
    for _ in range(9):
        pool.unreachable("a", 0.0)
    assert "a" in {pool.choose(1.0) for _ in range(50)}


def test_the_pause_is_bounded_and_ends_with_an_answer() -> None:
    pool = balancer()
    now = 0.0
    for _ in range(20):
        pool.unreachable("a", now)
        now += 8.0
    assert "a" in {pool.choose(now) for _ in range(50)}
    pool.answered("a")
    pool.unreachable("a", now)
    assert "a" in {pool.choose(now + 1.0) for _ in range(50)}


def test_a_replica_that_rejects_everything_does_not_attract_everything() -> None:
    pool = balancer()
    chosen = []
    for step in range(300):
        name = pool.choose(step / 30)
        assert name is not None
        chosen.append(name)
        if name == "a":
            pool.rejected("a", step / 30)
        else:
            pool.sent(name)
        if step > 40:
            pool.ended(chosen[step - 40]) if chosen[step - 40] != "a" else None
    assert chosen.count("a") < 180


def test_nobody_is_left_when_all_were_tried_or_are_down() -> None:
    pool = balancer()
    pool.unreachable("a", 0.0)
    assert pool.choose(0.5, {"b", "c"}) is None
