"""Runs a drill against a running stack: inject, watch, heal, watch. In, a drill; out, a timeline, or DrillFailedError.

DrillFailedError       a page was late, missing or doubled, never resolved, or something else paged
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from drills.clients import Cards, Message, Phone, Prometheus, Simulator
from drills.model import CardFault, Drill, Expected, Fault, ProcessFault

__all__ = ["DrillFailedError", "Parts", "Restartable", "Timeline", "judge", "judge_quiet", "run"]

_POLL_SECONDS = 0.05
_RESOLVE_WITHIN = timedelta(minutes=12)  # real time, as `within` is: a window of 5m, what an alert keeps, two waits
_RECOVERY_SECONDS = 20.0  # a simulated replica loads its model at its own pace, whatever the time scale
_HOLD = timedelta(seconds=60)  # how long the fault lasts after the page, so that doubled and wrong pages show


class DrillFailedError(Exception):
    """The drill did not go as it must; the message says what was seen instead."""


@dataclass(slots=True, kw_only=True)
class Timeline:
    """Prints what happens as it happens, in seconds since the fault."""

    started: float = field(default_factory=time.monotonic)

    def say(self, event: str, detail: str = "") -> float:
        """Print one line; answer its second."""
        second = time.monotonic() - self.started
        print(f"{second:7.1f} s  {event:<18} {detail}".rstrip(), flush=True)
        return second


class Restartable(Protocol):
    """A process that can be killed and started again."""

    def kill(self) -> None:
        """End it as the kernel would, without a chance to say goodbye."""

    def start(self) -> None:
        """Start it and wait until it serves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The running parts that a drill talks to, and by how much their time is compressed."""

    prometheus: Prometheus
    simulator: Simulator
    phone: Phone
    time_scale: float
    processes: Mapping[str, Restartable] = field(default_factory=dict)
    cards: Cards | None = None

    def of(self, fault: Fault | CardFault | ProcessFault) -> Callable[[bool], None]:
        """Answer how to bring a fault about (true) and take it back (false)."""
        if isinstance(fault, ProcessFault):
            process = self.processes[fault.process]
            return lambda is_broken: process.kill() if is_broken else process.start()
        if isinstance(fault, CardFault):
            if self.cards is None:
                raise DrillFailedError(f"{fault}: this run has no cards; the drill has to say how many it needs")
            cards = self.cards
            return lambda is_broken: cards.break_(fault) if is_broken else cards.heal(fault)
        return lambda is_broken: self.simulator.break_(fault) if is_broken else self.simulator.heal(fault)


def run(drill: Drill, parts: Parts) -> None:
    """Inject the faults, wait for the page, take the faults back, wait for the resolved message; print the timeline."""
    receiver = drill.page.receiver
    before = len(parts.phone.messages(receiver))
    pages_before = len(parts.phone.messages("page"))
    timeline = Timeline()
    for fault in drill.faults:
        parts.of(fault)(True)  # noqa: FBT003 - broken
    timeline.say("fault", drill.summary)
    _watch_page(drill, parts, timeline, before)
    _hold(parts)
    for fault in drill.faults:
        parts.of(fault)(False)  # noqa: FBT003 - not broken any more
    timeline.say("healed", "the faults are taken back")
    _watch_recovery(drill, parts, timeline, before)
    judge(drill.page, parts.phone.messages(receiver)[before:])
    if receiver != "page":
        judge_quiet(parts.phone.messages("page")[pages_before:])
    timeline.say("quiet", f"one {receiver}, resolved, and nothing else paged ({drill.page.alertname})")


def judge(expected: Expected, pages: Iterable[Message]) -> None:
    """Refuse anything but the expected page, once firing and once resolved."""
    pages = tuple(pages)
    wrong = [m for m in pages if (m.alertname, m.model) != (expected.alertname, expected.model)]
    if wrong:
        raise DrillFailedError(f"should have stayed quiet: {wrong[0].alertname} {wrong[0].model} ({wrong[0].summary})")
    statuses = [message.status for message in pages]
    if statuses != ["firing", "resolved"]:
        raise DrillFailedError(f"expected {expected.alertname} firing, then resolved; the phone got: {statuses}")


def judge_quiet(pages: Iterable[Message]) -> None:
    """Refuse any page."""
    for page in pages:
        raise DrillFailedError(f"nothing should have paged: {page.alertname} {page.model} ({page.summary})")


def _watch_page(drill: Drill, parts: Parts, timeline: Timeline, before: int) -> None:
    expected = drill.page
    own_pace = expected.own_pace.total_seconds()
    limit = expected.within.total_seconds() / parts.time_scale + own_pace

    def left() -> float:
        return timeline.started + limit - time.monotonic()

    _wait(lambda: bool(parts.prometheus.query(drill.bad_sample)), "a bad sample in Prometheus", left())
    timeline.say("first bad sample", drill.bad_sample)
    for state in ("pending", "firing"):
        _wait(lambda state=state: _reached(parts, expected, state), f"{expected.alertname} {state}", left())  # type: ignore[misc]
        timeline.say(state, f"{expected.alertname} {expected.model}")
    _wait(lambda: bool(_messages(parts, expected, "firing", before)), f"{expected.alertname} on the phone", left())
    page = _messages(parts, expected, "firing", before)[0]
    second = timeline.say(f"{expected.receiver} on the phone", page.summary)
    real = max(0.0, second - own_pace) * parts.time_scale + own_pace
    allowed = expected.within.total_seconds() + own_pace
    timeline.say("", f"that is {real:.0f} s at full time scale, {allowed:.0f} s allowed")


def _watch_recovery(drill: Drill, parts: Parts, timeline: Timeline, before: int) -> None:
    limit = _RECOVERY_SECONDS + _RESOLVE_WITHIN.total_seconds() / parts.time_scale
    _wait(lambda: not parts.prometheus.query(drill.bad_sample), "a good sample again", limit)
    timeline.say("recovered", "good samples again")
    _wait(lambda: bool(_messages(parts, drill.page, "resolved", before)), "the resolved message on the phone", limit)
    timeline.say("resolved", "the phone says so")


def _hold(parts: Parts) -> None:
    """Let the fault last, so that a doubled page or a wrong one has the time to arrive."""
    time.sleep(_HOLD.total_seconds() / parts.time_scale)


def _reached(parts: Parts, expected: Expected, state: str) -> bool:
    seen = parts.prometheus.alert_state(expected.alertname, expected.model)
    return seen in {state, "firing"}


def _messages(parts: Parts, expected: Expected, status: str, before: int) -> list[Message]:
    return [
        message
        for message in parts.phone.messages(expected.receiver)[before:]
        if (message.alertname, message.model, message.status) == (expected.alertname, expected.model, status)
    ]


def _wait(condition: Callable[[], bool], claim: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise DrillFailedError(f"{claim}: did not happen in time")
        time.sleep(_POLL_SECONDS)
