"""The demo fleet is healthy and lively: played in simulated time, on the pure model."""

import random
from pathlib import Path

import pytest

from simulator.config import Fleet, Model, Traffic, load_fleet
from simulator.engine import Engine
from simulator.kv_cache import block_hashes
from simulator.load import percentile
from simulator.sequence import Request, StepReport
from simulator.traffic import arrivals, prompt

SECONDS = 600.0


class PlayedReplica:
    """One engine that is stepped up to any moment."""

    def __init__(self, model: Model, seed: int) -> None:
        self.engine = Engine(speed=model.speed, limits=model.limits, seed=seed)
        self.reports: list[StepReport] = []
        self._now = 0.0
        self._ends: float | None = None

    def advance(self, moment: float) -> None:
        while True:
            if self._ends is None:
                duration = self.engine.begin_step(self._now)
                if duration is None:
                    self._now = moment
                    return
                self._ends = self._now + duration
            if self._ends > moment:
                return
            self._now, self._ends = self._ends, None
            self.reports.append(self.engine.finish_step(self._now))

    def busy(self) -> int:
        return len(self.engine.running) + len(self.engine.waiting)


def play(model: Model, traffic: Traffic, replicas: int) -> list[StepReport]:
    """Serve ten minutes of the traffic, each request by the least busy replica; give what the first one did."""
    chance = random.Random(11)  # noqa: S311 - chance, not a secret
    pool = [PlayedReplica(model, seed) for seed in range(replicas)]
    for number, moment in enumerate(arrivals(traffic, chance)):
        if moment > SECONDS:
            break
        for replica in pool:
            replica.advance(moment)
        words = " ".join(prompt(traffic, chance, number)).split()
        request = Request(
            request_id=str(number),
            prompt_tokens=len(words),
            answer_tokens=max(1, round(chance.gammavariate(2, model.answer_tokens / 2))),
            max_tokens=traffic.max_tokens,
            prefix=block_hashes(words, model.limits.block_size),
        )
        assert min(pool, key=PlayedReplica.busy).engine.submit(request, moment) is None
    return pool[0].reports


def first_token_times(reports: list[StepReport]) -> list[float]:
    return [step.at - token.sequence.arrived for step in reports for token in step.tokens if token.gap is None]


def request_paces(reports: list[StepReport]) -> list[float]:
    ended = [end for step in reports for end in step.finished if end.sequence.generated > 1]
    return [(end.at - (end.sequence.first_token_at or end.at)) / (end.sequence.generated - 1) for end in ended]


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return load_fleet(Path("simulator/demo.yml"))


@pytest.fixture(scope="module")
def qwen(fleet: Fleet) -> list[StepReport]:
    return play(fleet.replicas[0].model, fleet.traffic[0], 3)


@pytest.fixture(scope="module")
def llama(fleet: Fleet) -> list[StepReport]:
    return play(fleet.replicas[3].model, fleet.traffic[1], 2)


def test_first_tokens_are_early(qwen: list[StepReport], llama: list[StepReport]) -> None:
    assert percentile(first_token_times(qwen), 0.95) <= 0.6
    assert percentile(first_token_times(llama), 0.95) <= 1.0


def test_tokens_come_quickly(qwen: list[StepReport], llama: list[StepReport]) -> None:
    assert percentile(request_paces(qwen), 0.99) < 0.1
    assert percentile(request_paces(llama), 0.99) < 0.1


def test_the_kv_cache_moves_without_being_full(qwen: list[StepReport]) -> None:
    usage = [step.gauges.kv_usage for step in qwen]
    assert percentile(usage, 0.05) < 0.3
    assert 0.4 < percentile(usage, 0.95) < 0.75
    assert sum(step.preemptions for step in qwen) == 0


def test_a_small_queue_is_seen_at_times(qwen: list[StepReport]) -> None:
    waiting = [step.gauges.waiting for step in qwen]
    assert 0 < max(waiting) < 12
    assert percentile([float(count) for count in waiting], 0.9) == 0


def test_a_share_of_the_prompts_hits_the_prefix_cache(qwen: list[StepReport]) -> None:
    queried = [sequence for step in qwen for sequence in step.admitted]
    hits = sum(sequence.cached_tokens for sequence in queried)
    assert 0.1 < hits / sum(sequence.request.prompt_tokens for sequence in queried) < 0.5
