"""The load generator sends what it is told, in an open loop, and survives whatever the fleet does."""

import asyncio
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from simulator.config import Traffic, load_fleet
from simulator.load import Ending, LoadGenerator, Tally, open_session, percentile
from simulator.traffic import arrivals, prompt
from tests.simulator.small_fleet import running

DEMO = load_fleet(Path("simulator/demo.yml")).traffic[0]
STEADY = replace(DEMO, model="qwen", rate=40.0, swing=0.0, burst_size=0, prompt_tokens=20, max_tokens=10, timeout=5.0)


def times(traffic: Traffic, seconds: float, *, factor: float = 1.0) -> list[float]:
    taken = []
    for moment in arrivals(traffic, random.Random(5), factor=factor):  # noqa: S311 - chance, not a secret
        if moment > seconds:
            break
        taken.append(moment)
    return taken


def test_arrivals_are_poisson_with_the_rate_they_were_given() -> None:
    moments = times(replace(STEADY, rate=5.0), 2000)
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    mean = sum(gaps) / len(gaps)
    variance = sum((gap - mean) ** 2 for gap in gaps) / len(gaps)
    assert mean == pytest.approx(0.2, rel=0.05)
    assert variance**0.5 / mean == pytest.approx(1.0, rel=0.05)


def test_the_rate_swings() -> None:
    moments = times(replace(STEADY, rate=10.0, swing=0.5, swing_period=400.0), 400)
    first_half = sum(1 for moment in moments if moment < 200)
    assert first_half > 1.5 * (len(moments) - first_half)


def test_bursts_come_at_their_time() -> None:
    moments = times(replace(STEADY, rate=0.0, burst_size=7, burst_every=60.0), 130)
    assert [int(moment // 60) for moment in moments] == [1] * 7 + [2] * 7


def test_no_rate_and_no_burst_is_no_traffic() -> None:
    assert list(arrivals(replace(STEADY, rate=0.0, burst_size=0), random.Random(1))) == []  # noqa: S311 - chance, not a secret


def test_a_factor_multiplies_the_rate() -> None:
    assert len(times(STEADY, 100, factor=3)) == pytest.approx(3 * len(times(STEADY, 100)), rel=0.1)


def test_prompts_have_the_mean_length_and_a_share_has_the_same_beginning() -> None:
    chance = random.Random(1)  # noqa: S311 - chance, not a secret
    made = [prompt(DEMO, chance, number) for number in range(2000)]
    lengths = [len(f"{system} {user}".split()) for system, user in made]
    assert sum(lengths) / len(lengths) == pytest.approx(DEMO.prompt_tokens, rel=0.1)
    assert sum(1 for system, _ in made if system) / len(made) == pytest.approx(DEMO.shared_prefix_share, abs=0.05)
    assert len({system for system, _ in made}) == 2


def test_the_tally_speaks_in_one_line() -> None:
    tally = Tally(sent=13, first_tokens=[0.1] * 10 + [0.4])
    for ending in (Ending.FINISHED, Ending.FINISHED, Ending.REJECTED, Ending.FAILED):
        tally.count(ending)
    assert str(tally) == "13 sent, 2 finished, 2 failed (1 rejected), TTFT p95 0.40 s"
    assert str(Tally()) == "0 sent, 0 finished, 0 failed, TTFT p95 -"


def test_percentiles_are_values_that_occurred() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([1.0], 0.95) == 1.0


async def drive(urls: dict[str, str], seconds: float) -> Tally:
    async with open_session() as session:
        generator = LoadGenerator(STEADY, urls, session, seed=1, factor=1.0)
        task = asyncio.create_task(generator.run())
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return generator.take_tally()


def test_a_healthy_replica_finishes_everything() -> None:
    async def scenario() -> Tally:
        async with running(slots=16) as fleet:
            return await drive({"v": fleet.url("v")}, 1.0)

    tally = asyncio.run(scenario())
    assert tally.failed == 0
    assert tally.finished > 15
    assert percentile(tally.first_tokens, 0.95) < 0.3


def test_a_refused_replica_is_passed_over() -> None:
    async def scenario() -> Tally:
        async with running(slots=16) as fleet:
            await fleet.give("l", "kill")
            return await drive({"v": fleet.url("v"), "l": fleet.url("l")}, 1.0)

    tally = asyncio.run(scenario())
    assert tally.failed == 0
    assert tally.finished > 15


def test_a_loading_llama_server_is_passed_over() -> None:
    async def scenario() -> Tally:
        async with running(slots=16) as fleet:
            await fleet.give("l", "loading", seconds=60)
            return await drive({"v": fleet.url("v"), "l": fleet.url("l")}, 1.0)

    assert asyncio.run(scenario()).failed == 0


def test_a_replica_that_dies_in_the_middle_costs_only_its_own_streams() -> None:
    async def scenario() -> Tally:
        async with running(slots=16) as fleet:
            urls = {"v": fleet.url("v"), "l": fleet.url("l")}
            driving = asyncio.create_task(drive(urls, 1.5))
            await asyncio.sleep(0.5)
            await fleet.give("l", "kill")
            return await driving

    tally = asyncio.run(scenario())
    assert tally.finished > 25
    assert tally.failed < 10


def test_with_no_replica_at_all_requests_fail_and_the_generator_goes_on() -> None:
    async def scenario() -> Tally:
        async with running() as fleet:
            await fleet.give("v", "kill")
            return await drive({"v": fleet.url("v")}, 0.5)

    tally = asyncio.run(scenario())
    assert tally.sent > 5
    assert tally.failed == tally.sent


def test_rejections_are_counted_also_when_they_come_after_a_200() -> None:
    async def scenario() -> Tally:
        async with running() as fleet:
            await fleet.give("v", "full_queue")
            return await drive({"v": fleet.url("v")}, 1.0)

    tally = asyncio.run(scenario())
    assert tally.rejected == tally.failed > 15
    assert tally.finished == 0


def test_errors_in_a_stream_are_failures() -> None:
    async def scenario() -> Tally:
        async with running() as fleet:
            await fleet.give("v", "errors", share=1)
            return await drive({"v": fleet.url("v")}, 0.7)

    tally = asyncio.run(scenario())
    assert tally.failed > 5
    assert tally.rejected == 0
