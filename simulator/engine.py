"""The engine model: continuous batching with a waiting queue, chunked prefill, KV blocks and preemption.

In: requests, aborts, and the time. Out: how long the next step takes, and a report of what it did.
It has no clock and no sockets, so the same arrivals always give the same answers.
"""

import heapq
import random
from collections import deque
from dataclasses import dataclass

from simulator.kv_cache import KVCache
from simulator.sequence import Finished, Gauges, Outcome, Rejection, Request, Sequence, StepReport, Token


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """What a step costs, in seconds: `base` to read the weights, then each sequence and each prompt token."""

    base: float
    per_sequence: float
    per_prefill_token: float
    prefill_tokens_per_step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the engine has room for; None means no limit."""

    slots: int
    blocks: int
    block_size: int
    queued_requests: int | None = None
    queued_tokens: int | None = None


@dataclass(slots=True, kw_only=True)
class Disturbance:
    """What faults do to the engine while it runs."""

    slow_prefill: float = 1.0
    slow_decode: float = 1.0
    reject_all: bool = False
    error_share: float = 0.0


class Engine:
    """One replica's scheduler. Call `begin_step`, let its duration pass, call `finish_step`."""

    def __init__(self, *, speed: Speed, limits: Limits, seed: int) -> None:
        self.limits = limits
        self.disturbance = Disturbance()
        self.kv = KVCache(blocks=limits.blocks, block_size=limits.block_size)
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.last_in_slot: dict[int, Sequence] = {}
        self._speed = speed
        self._random = random.Random(seed)  # noqa: S311 - a model of chance, not a secret
        self._free_slots = list(range(limits.slots))
        self._sequences: dict[str, Sequence] = {}
        self._scheduled: dict[str, int] = {}  # request id -> tokens it computes in this step
        self._admitted: list[Sequence] = []
        self._preempted = 0
        self._queued_tokens = 0

    def gauges(self) -> Gauges:
        """Describe the present state."""
        return Gauges(running=len(self.running), waiting=len(self.waiting), kv_usage=self.kv.usage)

    def submit(self, request: Request, now: float) -> Rejection | None:
        """Queue a request, or say which limit refuses it."""
        limits = self.limits
        if self.disturbance.reject_all:
            return Rejection.QUEUED_REQUESTS
        if limits.queued_requests is not None and len(self.waiting) >= limits.queued_requests:
            return Rejection.QUEUED_REQUESTS
        tokens = self._queued_tokens + request.prompt_tokens
        if limits.queued_tokens is not None and self.waiting and tokens > limits.queued_tokens:
            return Rejection.QUEUED_TOKENS
        sequence = Sequence(request=request, arrived=now)
        if self._random.random() < self.disturbance.error_share:
            sequence.fails_at = self._random.randint(1, max(1, request.target))
        self._sequences[request.request_id] = sequence
        self.waiting.append(sequence)
        self._queued_tokens = tokens
        return None

    def abort(self, request_id: str) -> Sequence | None:
        """Forget a request whose client has gone; None when it had already ended."""
        sequence = self._sequences.pop(request_id, None)
        if sequence is None:
            return None
        self._scheduled.pop(request_id, None)
        if sequence in self.running:
            self._leave(sequence)
        else:
            self.waiting.remove(sequence)
            self._queued_tokens -= sequence.request.prompt_tokens
        return sequence

    def begin_step(self, now: float) -> float | None:
        """Choose what the next step computes; give its duration in seconds, or None when there is nothing to do."""
        self._scheduled = {}
        self._admitted = []
        self._preempted = 0
        budget = self._prefill_budget()
        while self.kv.free < 0 and len(self.running) > 1:
            self._preempt(self.running[-1])  # a fault has just taken blocks that were in use
        for sequence in tuple(self.running):
            if sequence not in self.running:
                continue  # preempted for a sequence before it
            tokens = 1 if sequence.is_decoding else min(sequence.remaining, budget)
            if tokens and self._make_room(sequence, sequence.computed + tokens):
                self._scheduled[sequence.request.request_id] = tokens
                budget -= 0 if sequence.is_decoding else tokens
        if not self._preempted:
            self._admit_waiting(budget, now)
        return self._duration() if self._scheduled else None

    def finish_step(self, now: float) -> StepReport:
        """Collect the tokens of the step that has just passed."""
        tokens: list[Token] = []
        finished: list[Finished] = []
        prompt_tokens = 0
        for request_id, computed in self._scheduled.items():
            sequence = self._sequences[request_id]
            if not sequence.is_decoding:
                prompt_tokens += computed
            sequence.computed += computed
            if sequence.remaining > 0:
                continue
            tokens.append(self._sample(sequence, now))
            outcome = _outcome(sequence)
            if outcome is not None:
                finished.append(Finished(sequence=sequence, outcome=outcome, at=now))
        for end in finished:
            del self._sequences[end.sequence.request.request_id]
            self._leave(end.sequence)
        report = StepReport(
            at=now,
            computed_prompt_tokens=prompt_tokens,
            scheduled_sequences=len(self._scheduled),
            tokens=tuple(tokens),
            finished=tuple(finished),
            admitted=tuple(self._admitted),
            preemptions=self._preempted,
            gauges=self.gauges(),
        )
        self._scheduled = {}
        return report

    def _prefill_budget(self) -> int:
        # A slow prefill computes fewer prompt tokens in a step of the same length: it delays first tokens, not the
        # sequences that decode beside it.
        return max(1, int(self._speed.prefill_tokens_per_step / self.disturbance.slow_prefill))

    def _duration(self) -> float:
        decoding = sum(1 for request_id in self._scheduled if self._sequences[request_id].is_decoding)
        prefill = sum(self._scheduled.values()) - decoding
        seconds = self._speed.base + self._speed.per_sequence * decoding
        if decoding:
            seconds *= self.disturbance.slow_decode
        return seconds + prefill * self._speed.per_prefill_token * self.disturbance.slow_prefill

    def _make_room(self, sequence: Sequence, tokens: int) -> bool:
        while not self.kv.grow(sequence.request.request_id, tokens):
            victim = self.running[-1]
            self._preempt(victim)
            if victim is sequence:
                return False
        return True

    def _preempt(self, victim: Sequence) -> None:
        self._leave(victim)
        self._scheduled.pop(victim.request.request_id, None)
        victim.computed = 0  # recompute: its prompt and its own tokens are prefilled again
        victim.preemptions += 1
        self.waiting.appendleft(victim)
        self._queued_tokens += victim.request.prompt_tokens
        self._preempted += 1

    def _admit_waiting(self, budget: int, now: float) -> None:
        while self.waiting and self._free_slots and budget > 0:
            sequence = self.waiting[0]
            request = sequence.request
            cached = self.kv.cached_prefix(request.prefix, request.prompt_tokens)
            tokens = min(sequence.remaining - cached, budget)
            if not self.kv.admit(request.request_id, request.prefix, cached, cached + tokens):
                return
            self.waiting.popleft()
            self._queued_tokens -= request.prompt_tokens
            sequence.computed = cached
            if sequence.scheduled_at is None:
                sequence.scheduled_at = max(now, sequence.arrived)
                sequence.cached_tokens = cached
                self._admitted.append(sequence)
            sequence.slot = heapq.heappop(self._free_slots)
            self.running.append(sequence)
            self._scheduled[request.request_id] = tokens
            budget -= tokens

    def _sample(self, sequence: Sequence, now: float) -> Token:
        gap = None if sequence.last_token_at is None else max(0.0, now - sequence.last_token_at)
        if sequence.first_token_at is None:
            sequence.first_token_at = now
            self.kv.share_prompt(sequence.request.request_id, sequence.request.prefix)
        sequence.last_token_at = now
        sequence.generated += 1
        return Token(sequence=sequence, index=sequence.generated, gap=gap)

    def _leave(self, sequence: Sequence) -> None:
        self.running.remove(sequence)
        self.kv.release(sequence.request.request_id)
        heapq.heappush(self._free_slots, sequence.slot)
        self.last_in_slot[sequence.slot] = sequence


def _outcome(sequence: Sequence) -> Outcome | None:
    request = sequence.request
    if sequence.fails_at is not None and sequence.generated >= sequence.fails_at:
        return Outcome.ERROR
    if sequence.generated < request.target:
        return None
    return Outcome.STOP if request.answer_tokens < request.max_tokens else Outcome.LENGTH
