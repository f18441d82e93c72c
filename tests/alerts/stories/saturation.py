"""Stories of `alerts/groups/saturation.py`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tests.alerts.stories.lines import Lines, counter, gauge
from tests.alerts.stories.situations import Situation, Story

NO_BUCKETS = {Situation.REBUCKETED: "no bucket of a histogram is read"}
ONLY_GAUGES = {Situation.RESET: "gauges do not count"}
TTFT = "llm_time_to_first_token_seconds"
M = 'model="@"'
A, B = (f'{M},replica="{name}",engine="vllm"' for name in "ab")


def serving(target: str, count: int) -> Lines:
    """Write a replica that is ready and gives tokens."""
    return {
        f'llm_replica_state{{{target},state="ready"}}': gauge((count, 1)),
        f"llm_generation_tokens_total{{{target}}}": counter((count, 500)),
    }


def queue(a: int, b: int) -> Lines:
    """Let requests wait at two replicas after ten minutes."""
    waiting = {A: a, B: b}
    lines = {f"llm_requests_waiting{{{t}}}": gauge((60, 0), (180, many)) for t, many in waiting.items()}
    return serving(A, 240) | serving(B, 240) | lines


def kv_cache(usage: float, waiting: tuple[float, ...]) -> Lines:
    """Fill the KV cache after ten minutes, while requests wait in turns."""
    return serving(A, 200) | {
        f"llm_kv_cache_usage_ratio{{{A}}}": gauge((60, 0.5), (140, usage)),
        f"llm_requests_waiting{{{A}}}": waiting * (200 // len(waiting)),
    }


def finished(count: int, each: float, outcome: str = "stop") -> Lines:
    return {f'llm_requests_finished_total{{{A},outcome="{outcome}"}}': counter((count, each), start=7)}


def preempted(preemptions: float, requests: float) -> Lines:
    return finished(200, requests) | {f"llm_preemptions_total{{{A}}}": counter((60, 0), (140, preemptions), start=3)}


def rejected(rejections: float, answered: float) -> Lines:
    turned_away = f'llm_requests_rejected_total{{{A},reason="queue_requests"}}'
    return finished(200, answered) | {turned_away: counter((60, 0), (140, rejections), start=3)}


def aborted(begun: float, ended: float) -> Lines:
    """Let some requests vanish after their first token, from the tenth minute on."""
    first_tokens = dict.fromkeys(
        (f"{TTFT}_count{{{A}}}", f'{TTFT}_bucket{{{A},le="2.0"}}'), counter((420, begun), start=7)
    )
    return {
        **first_tokens,
        f'llm_requests_finished_total{{{A},outcome="stop"}}': counter((60, begun), (360, ended), start=7),
    }


def cache(before: float, after: float) -> Lines:
    """Let the prefix cache find less after six hours."""
    return {
        f"llm_prefix_cache_query_tokens_total{{{A}}}": counter((450, 100), start=7),
        f"llm_prefix_cache_hit_tokens_total{{{A}}}": counter((360, before), (90, after), start=7),
    }


def story(  # noqa: PLR0913 - what differs between the stories of this file
    alert: str,
    trouble: Lines,
    below: Mapping[str, Lines],
    fires: int,
    *,
    over: int = 2400,
    middle: int = 100,
    more: str = "",
    cannot: Mapping[Situation, str] = MappingProxyType({}),
    **others: Any,  # noqa: ANN401 - fields of a story
) -> Story:
    return Story(
        alert=alert,
        labels=M + more,
        trouble=trouble,
        below=below,
        fires=fires,
        over=over,
        middle=middle,
        stages=("indicators-1h", "load", "work", "peers", "alerts-saturation"),
        cannot={**NO_BUCKETS, **cannot},
        **others,
    )


STORIES = (
    story(
        "LLMQueueGrowing",
        queue(5, 4),
        {"four for each ready replica": queue(4, 4)},
        1540,
        cannot=ONLY_GAUGES,
    ),
    story(
        "LLMKVCachePressure",
        kv_cache(0.98, (1, 1, 1, 1, 1, 1, 1, 1, 1, 2)),
        {"94 % is not full": kv_cache(0.94, (2,)), "one waits": kv_cache(0.98, (1,))},
        1225,
        more=',replica="a"',
    ),
    story(
        "LLMPreemptionStorm",
        preempted(0.36, 1.64),
        {"18 for 100 requests": preempted(0.36, 2), "18 within ten minutes": preempted(0.3, 1.36)},
        1505,
        clear=preempted(1, 2),
    ),
    story(
        "LLMRequestsRejected",
        rejected(0.095, 8.4),
        {"nine in a thousand": rejected(0.09, 10), "four within ten minutes": rejected(0.075, 6.7)},
        1505,
        clear=rejected(1, 9),
    ),
    story(
        "LLMAbortSurge",
        aborted(0.55, 0.43),
        {"18 of 100": aborted(0.66, 0.54), "18 within half an hour": aborted(0.45, 0.35)},
        2905,
        middle=250,
    ),
    story(
        "LLMPrefixCacheCollapse",
        cache(23, 9),
        {"a little less than usual": cache(23, 12), "a cache that never found a fifth": cache(19, 0)},
        24150,
        over=3600,
        every=60,
        evaluate=210,
        middle=380,
    ),
)
