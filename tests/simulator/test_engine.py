"""The engine model behaves like a queueing system that batches."""

import random
from dataclasses import replace
from itertools import pairwise

import pytest

from simulator.engine import Engine, Limits, Speed
from simulator.kv_cache import block_hashes
from simulator.sequence import Outcome, Rejection, Request, StepReport

SPEED = Speed(base=0.02, per_sequence=0.001, per_prefill_token=0.0001, prefill_tokens_per_step=256)
LIMITS = Limits(slots=8, blocks=400, block_size=16)


def request(name: object, *, prompt: int = 100, answer: int = 20, most: int = 400) -> Request:
    return Request(request_id=str(name), prompt_tokens=prompt, answer_tokens=answer, max_tokens=most)


def run(engine: Engine, *, since: float = 0.0, until: float = float("inf")) -> list[StepReport]:
    """Step until nothing is left to do, or until the time is over."""
    now, reports = since, []
    while now < until and (duration := engine.begin_step(now)) is not None:
        now += duration
        reports.append(engine.finish_step(now))
    return reports


def serve(engine: Engine, *, rate: float, seconds: float, seed: int = 3, answer: int = 40) -> list[StepReport]:
    """Feed Poisson arrivals for a while."""
    chance = random.Random(seed)  # noqa: S311 - chance, not a secret
    now, arrival, number = 0.0, chance.expovariate(rate), 0
    reports: list[StepReport] = []
    while now < seconds:
        while arrival <= now:
            engine.submit(
                request(number, prompt=chance.randint(20, 200), answer=chance.randint(1, 2 * answer)), arrival
            )
            arrival += chance.expovariate(rate)
            number += 1
        duration = engine.begin_step(now)
        if duration is None:
            now = arrival
            continue
        now += duration
        reports.append(engine.finish_step(now))
    return reports


def engine(**changes: int | None) -> Engine:
    return Engine(speed=SPEED, limits=replace(LIMITS, **changes), seed=1)  # type: ignore[arg-type]  # names are checked by replace


def outcomes(reports: list[StepReport]) -> dict[str, Outcome]:
    return {end.sequence.request.request_id: end.outcome for step in reports for end in step.finished}


def test_littles_law_holds() -> None:
    reports = serve(engine(), rate=3.0, seconds=900)
    ends = [end for step in reports for end in step.finished]
    mean_time = sum(end.at - end.sequence.arrived for end in ends) / len(ends)
    throughput = len(ends) / reports[-1].at
    area = sum(
        (step.gauges.running + step.gauges.waiting) * (following.at - step.at) for step, following in pairwise(reports)
    )
    assert area / reports[-1].at == pytest.approx(throughput * mean_time, rel=0.05)


def test_the_queue_grows_when_more_comes_than_can_be_served() -> None:
    reports = serve(engine(), rate=20.0, seconds=60)
    thirds = [reports[len(reports) * part // 4].gauges.waiting for part in (1, 2, 3)]
    assert thirds[0] < thirds[1] < thirds[2]
    assert thirds[2] > 100


def test_the_queue_is_short_when_there_is_room() -> None:
    reports = serve(engine(), rate=2.0, seconds=300)
    assert sum(step.gauges.waiting for step in reports) / len(reports) < 0.05


def test_every_token_counted_is_a_token_emitted() -> None:
    reports = serve(engine(blocks=40), rate=4.0, seconds=120)
    ends = [end for step in reports for end in step.finished]
    emitted: dict[str, int] = {}
    for step in reports:
        for token in step.tokens:
            name = token.sequence.request.request_id
            assert token.index == emitted.get(name, 0) + 1
            emitted[name] = token.index
    assert ends
    assert all(emitted[end.sequence.request.request_id] == end.sequence.generated for end in ends)


def test_the_same_seed_gives_the_same_steps() -> None:
    first = serve(engine(), rate=5.0, seconds=60)
    second = serve(engine(), rate=5.0, seconds=60)
    assert [(step.at, step.gauges) for step in first] == [(step.at, step.gauges) for step in second]


def test_never_more_sequences_run_than_there_are_slots() -> None:
    reports = serve(engine(slots=3), rate=20.0, seconds=30)
    assert max(step.gauges.running for step in reports) == 3


def test_nothing_is_preempted_while_blocks_are_left() -> None:
    reports = serve(engine(), rate=20.0, seconds=120)
    assert max(step.gauges.kv_usage for step in reports) < 1
    assert sum(step.preemptions for step in reports) == 0


def test_sequences_preempt_each_other_when_blocks_run_out_and_still_finish() -> None:
    crowded = engine(blocks=30)
    for number in range(8):
        crowded.submit(request(number, prompt=60, answer=300, most=300), 0.0)
    reports = run(crowded)
    assert sum(step.preemptions for step in reports) > 0
    assert len(outcomes(reports)) == 8
    assert crowded.kv.free == 30
    assert sum(len(step.tokens) for step in reports) == 8 * 300


def test_a_preempted_request_queries_the_prefix_cache_once() -> None:
    crowded = engine(blocks=30)
    for number in range(8):
        crowded.submit(request(number, prompt=60, answer=300, most=300), 0.0)
    assert sum(len(step.admitted) for step in run(crowded)) == 8


def test_blocks_taken_by_a_fault_cause_preemptions_at_once() -> None:
    busy = engine()
    for number in range(8):
        busy.submit(request(number, prompt=200, answer=200), 0.0)
    run(busy, until=1.0)
    busy.kv.withheld = 400 - 40
    duration = busy.begin_step(1.0)
    assert duration is not None
    assert busy.finish_step(1.0 + duration).preemptions > 0
    assert busy.kv.free >= 0


def test_stop_and_length_are_told_apart() -> None:
    both = engine()
    both.submit(request("stops", answer=5, most=10), 0.0)
    both.submit(request("is cut", answer=10, most=10), 0.0)
    assert outcomes(run(both)) == {"stops": Outcome.STOP, "is cut": Outcome.LENGTH}


def test_a_share_of_errors_ends_requests_early() -> None:
    failing = engine(slots=50, blocks=4000)
    failing.disturbance.error_share = 0.5
    for number in range(200):
        failing.submit(request(number), 0.0)
    ends = list(outcomes(run(failing)).values())
    assert 70 < ends.count(Outcome.ERROR) < 130
    assert len(ends) == 200


def test_an_aborted_request_leaves_its_slot_and_blocks() -> None:
    one = engine()
    one.submit(request("gone", answer=400), 0.0)
    run(one, until=0.5)
    assert one.abort("gone") is not None
    assert one.gauges().running == 0
    assert one.kv.free == 400
    assert one.abort("gone") is None


def test_an_abort_in_the_middle_of_a_step_yields_no_token() -> None:
    one = engine()
    one.submit(request("gone"), 0.0)
    assert one.begin_step(0.0)
    one.abort("gone")
    assert one.finish_step(0.1).tokens == ()


def test_an_aborted_request_leaves_the_queue() -> None:
    full = engine(slots=1)
    full.submit(request("runs"), 0.0)
    full.submit(request("waits"), 0.0)
    run(full, until=0.1)
    full.abort("waits")
    assert full.gauges().waiting == 0


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"queued_requests": 2}, Rejection.QUEUED_REQUESTS),
        ({"queued_tokens": 250}, Rejection.QUEUED_TOKENS),
    ],
)
def test_a_full_queue_rejects(limits: dict[str, int], reason: Rejection) -> None:
    full = engine(**limits)
    assert [full.submit(request(number), 0.0) for number in range(3)] == [None, None, reason]


def test_a_fault_can_reject_everything() -> None:
    refusing = engine()
    refusing.disturbance.reject_all = True
    assert refusing.submit(request("r"), 0.0) is Rejection.QUEUED_REQUESTS


def test_a_long_prompt_is_computed_in_chunks_beside_decoding() -> None:
    both = engine()
    both.submit(request("decodes", prompt=10, answer=50), 0.0)
    run(both, until=0.1)
    both.submit(request("long", prompt=1000, answer=1), 0.1)
    reports = run(both, since=0.1)
    chunks = [step for step in reports if step.computed_prompt_tokens]
    assert [step.computed_prompt_tokens for step in chunks] == [256, 256, 256, 232]
    assert all(any(token.sequence.request.request_id == "decodes" for token in step.tokens) for step in chunks)


def test_slow_prefill_delays_the_first_token_and_not_the_others() -> None:
    normal, slow = engine(), engine()
    slow.disturbance.slow_prefill = 30
    for one in (normal, slow):
        one.submit(request("r", prompt=300, answer=30), 0.0)
    before, after = run(normal), run(slow)
    assert next(step.at for step in after if step.tokens) > 10 * next(step.at for step in before if step.tokens)
    assert gaps(after) == pytest.approx(gaps(before))


def test_slow_decode_stretches_the_gaps() -> None:
    normal, slow = engine(), engine()
    slow.disturbance.slow_decode = 6
    for one in (normal, slow):
        one.submit(request("r", answer=30), 0.0)
    assert gaps(run(slow)) == pytest.approx([6 * gap for gap in gaps(run(normal))])


def gaps(reports: list[StepReport]) -> list[float]:
    return [token.gap for step in reports for token in step.tokens if token.gap is not None]


def test_a_shared_prefix_is_computed_once() -> None:
    cached = engine()
    words = [f"w{index}" for index in range(160)]
    shared = replace(request("a", prompt=160), prefix=block_hashes(words, 16))
    cached.submit(shared, 0.0)
    run(cached)
    cached.submit(replace(shared, request_id="b"), 9.0)
    reports = run(cached, since=9.0)
    assert reports[0].admitted[0].cached_tokens == 144
    assert reports[0].computed_prompt_tokens == 16


def test_an_idle_engine_makes_no_step() -> None:
    assert engine().begin_step(0.0) is None
