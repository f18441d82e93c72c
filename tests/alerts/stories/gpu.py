"""Stories of `alerts/groups/gpu.py`. A test begins at 0 by the clock, so the time of an error is a second of it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tests.alerts.stories.lines import NOTHING, Lines, counter, gauge
from tests.alerts.stories.situations import Situation, Story

NO_REQUESTS = {
    Situation.NO_TRAFFIC: "it does not depend on requests",
    Situation.REBUCKETED: "no bucket of a histogram is read",
}
ONLY_GAUGES = {**NO_REQUESTS, Situation.RESET: "gauges do not count"}
CLAIMED = 'llm_replica_gpu_info{model="m",replica="r",gpu="@",instance="h"}'
CARD = 'gpu="@",instance="h"'


def card(count: int, **series: Lines) -> Lines:
    """Write a card that answers, and whose replica is known; `series` are what else is known of it."""
    known = {CLAIMED: gauge((count, 1)), f"llm_gpu_up{{{CARD}}}": gauge((count, 1))}
    return known | {name: line for lines in series.values() for name, line in lines.items()}


def lost(answer: int) -> Lines:
    return {CLAIMED: gauge((90, 1)), f"llm_gpu_up{{{CARD}}}": gauge((30, 1), (60, answer))}


def error(at: float, seen: int, count: int = 89) -> Lines:
    times = gauge((seen, NOTHING), (count - seen, at))
    return card(count, error={f'llm_gpu_xid_last_timestamp_seconds{{{CARD},xid="79"}}': times})


def memory_errors(*phases: tuple[int, float]) -> Lines:
    return card(120, errors={f'llm_gpu_ecc_errors_total{{{CARD},kind="uncorrected"}}': counter(*phases, start=3)})


def rows(failed: int) -> Lines:
    return card(60, rows={f'llm_gpu_remapped_rows{{{CARD},kind="failed"}}': gauge((20, 0), (40, failed))})


def throttled(share: float) -> Lines:
    reason = f'llm_gpu_throttled{{{CARD},reason="hardware_thermal"}}'
    return card(150, throttled={reason: gauge((30, 0), (120, share))})


def memory(free: float) -> Lines:
    return card(
        180,
        free={f"llm_gpu_memory_free_bytes{{{CARD}}}": gauge((30, 50), (150, free))},
        total={f"llm_gpu_memory_total_bytes{{{CARD}}}": gauge((180, 100))},
    )


def idle(utilization: float, waiting: int = 3) -> Lines:
    return {
        'llm_replica_gpu_info{model="m",replica="@",gpu="@",instance="h"}': gauge((120, 1)),
        f"llm_gpu_utilization_ratio{{{CARD}}}": gauge((30, 0.9), (90, utilization)),
        'llm_requests_waiting{model="m",replica="@",engine="vllm"}': gauge((120, waiting)),
    }


def told(  # noqa: PLR0913, PLR0917 - what differs between the stories of this file
    alert: str,
    trouble: Lines,
    below: Mapping[str, Lines],
    fires: int,
    middle: int,
    over: int,
    *,
    late: int = 60,
    cannot: Mapping[Situation, str] = ONLY_GAUGES,
) -> Iterator[Story]:
    """Tell it to the replica that uses the card, and of a card that nobody uses."""
    unclaimed, *others = (
        {s: line for s, line in lines.items() if s != CLAIMED} for lines in (trouble, *below.values())
    )
    of_replica = Story(
        alert=alert,
        labels='gpu="@",model="m",replica="r"',
        trouble=trouble,
        below=below,
        fires=fires,
        stages=("hardware", "alerts-gpu"),
        middle=middle,
        over=over,
        late=late,
        cannot=cannot,
    )
    yield of_replica
    yield replace(of_replica, labels='gpu="@"', trouble=unclaimed, below=dict(zip(below, others, strict=True)))


SOURCE = 'source="dcgm",origin="@",instance="h"'


def source(answer: int) -> Lines:
    return {
        f"llm_gpu_collector_cards{{{SOURCE}}}": gauge((90, 4)),
        f"llm_gpu_collector_up{{{SOURCE}}}": gauge((30, 1), (60, answer)),
    }


ANSWERS = {Situation.NO_NUMBERS: "whether a card answers is the exporter's own number"}

STORIES = (
    *told("LLMGPULost", lost(0), {"it answers": lost(1)}, 455, 33, 120, cannot={**ONLY_GAUGES, **ANSWERS}),
    Story(
        alert="LLMGPUSourceDown",
        labels='source="dcgm",origin="@"',
        trouble=source(0),
        below={"it answers": source(1)},
        fires=455,
        stages=("alerts-gpu",),
        middle=33,
        over=120,
        cannot={**ONLY_GAUGES, **ANSWERS},
    ),
    *told("LLMGPUXid", error(300, 80), {"eleven minutes ago": error(-610, 0)}, 805, 84, 120, late=0),
    *told(
        "LLMGPUEccUncorrected",
        memory_errors((60, 0), (1, 1), (59, 0)),
        {"errors of last year": memory_errors((120, 0))},
        630,
        70,
        3700,
        cannot=NO_REQUESTS,
    ),
    *told("LLMGPUEccUncorrected", rows(1), {"no row failed": rows(0)}, 210, 30, 120),
    *told("LLMGPUThrottled", throttled(0.55), {"45 % of the time": throttled(0.45)}, 910, 50, 400),
    *told("LLMGPUMemoryNearFull", memory(1.8), {"2.2 % are free": memory(2.2)}, 1225, 90, 400),
    Story(
        alert="LLMGPUIdleWithQueue",
        labels='model="m",replica="@"',
        trouble=idle(0.045),
        below={"hardly busy": idle(0.055), "nothing waits": idle(0.045, 0)},
        fires=735,
        stages=("hardware", "alerts-gpu"),
        middle=50,
        over=400,
        cannot={key: reason for key, reason in ONLY_GAUGES.items() if key is not Situation.NO_TRAFFIC},
    ),
)
