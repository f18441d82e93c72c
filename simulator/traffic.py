"""What the clients of one model do: when they come and what they ask. Pure: a source of chance in, numbers out."""

import heapq
import math
import random
from collections.abc import Iterator

from simulator.config import Traffic

_BURST_WIDTH = 1.0  # seconds in which a burst arrives
_VOCABULARY = tuple(
    "load slot queue batch token prefix cache block decode prefill replica model engine spare drain step".split()  # noqa: SIM905 - reads better
)
_FRAME = 4  # words that a chat template adds to a system and a user message


def arrivals(traffic: Traffic, chance: random.Random, *, factor: float = 1.0) -> Iterator[float]:
    """Give the moments of arrival, in seconds from the start: Poisson with a moving rate, and bursts."""
    return heapq.merge(_poisson(traffic, chance, factor), _bursts(traffic, chance))


def prompt(traffic: Traffic, chance: random.Random, number: int) -> tuple[str, str]:
    """Make a system and a user message; a share of the prompts has the same system message."""
    wanted = max(2, round(chance.gammavariate(4, traffic.prompt_tokens / 4)) - _FRAME)
    wanted = min(wanted, 3 * traffic.prompt_tokens)
    shared = traffic.shared_prefix_tokens if chance.random() < traffic.shared_prefix_share else 0
    own = max(1, wanted - shared)
    system = " ".join(_VOCABULARY[index % len(_VOCABULARY)] for index in range(shared))
    return system, f"r{number} " + " ".join(chance.choices(_VOCABULARY, k=own - 1))


def _poisson(traffic: Traffic, chance: random.Random, factor: float) -> Iterator[float]:
    highest = traffic.rate * factor * (1 + traffic.swing)
    now = 0.0
    while highest > 0:
        now += chance.expovariate(highest)
        swing = traffic.swing * math.sin(2 * math.pi * now / traffic.swing_period)
        if chance.random() * (1 + traffic.swing) < 1 + swing:  # thinning keeps the process Poisson
            yield now


def _bursts(traffic: Traffic, chance: random.Random) -> Iterator[float]:
    now = 0.0
    while traffic.burst_size:
        now += traffic.burst_every
        yield from sorted(now + chance.random() * _BURST_WIDTH for _ in range(traffic.burst_size))
