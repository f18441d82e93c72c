"""Alerts about too much load, in promtool: what fires, and what is only a busy or an idle moment."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from exporter.fleet import Fleet, Replica
from exporter.thresholds import Thresholds, ThresholdTable
from running.tools import Tool
from tests.prometheus.promtool import Case, Expect, Rules, run, samples

RULES = Rules(
    fleet=Fleet(replicas=(Replica(name="a", url="http://127.0.0.1:8000"),)),
    stages=("indicators-1h", "load", "work", "peers", "alerts-saturation"),
    evaluate="30s",
)
MODEL = 'model="org/a&b"'
TARGET = f'{MODEL},replica="a"'
LONG = 360  # samples of 10 s


def fires(at: str, alertname: str, *labels: str) -> Expect:
    series = f'ALERTS{{alertname="{alertname}",alertstate="firing"'
    return Expect(
        at=at,
        expr=f"{series}}}",
        samples={f'{series},severity="ticket",{MODEL}{each}}}': 1.0 for each in labels},
    )


def quiet(alertname: str, *minutes: int) -> list[Expect]:
    return [fires(f"{minute}m", alertname) for minute in minutes]


def counter(name: str, *phases: tuple[int, float | None], more: str = "") -> dict[str, str]:
    return {f"{name}{{{TARGET}{more}}}": samples(*phases)}


def gauge(name: str, values: str) -> dict[str, str]:
    return {f"{name}{{{TARGET}}}": values}


def serving(tokens: float = 500, count: int = LONG) -> dict[str, str]:
    """Write a replica that is ready and gives tokens."""
    ready = {f'llm_replica_state{{{TARGET},state="ready"}}': f"1x{count}"}
    return ready | counter("llm_generation_tokens_total", (count, tokens))


def finished(*phases: tuple[int, float | None], outcome: str = "stop") -> dict[str, str]:
    return counter("llm_requests_finished_total", *phases, more=f',outcome="{outcome}"')


def rejected(*phases: tuple[int, float | None]) -> dict[str, str]:
    return counter("llm_requests_rejected_total", *phases, more=',reason="queue_requests"')


QUEUE = [
    Case(
        claim="a queue that is never short for a quarter of an hour",
        series=serving() | gauge("llm_requests_waiting", "0x60 9x200 0x100"),
        expect=[
            *quiet("LLMQueueGrowing", 10, 24),
            fires("26m", "LLMQueueGrowing", ""),
            fires("50m", "LLMQueueGrowing", ""),
            *quiet("LLMQueueGrowing", 60),
        ],
    ),
    Case(
        claim="bursts, a short queue, and one that stands still because nothing moves",
        series=serving() | gauge("llm_requests_waiting", "0 30 20 10 " * 90),
        expect=quiet("LLMQueueGrowing", 20, 40, 59),
    ),
    Case(
        claim="four requests that wait are not too many",
        series=serving() | gauge("llm_requests_waiting", "4x360"),
        expect=quiet("LLMQueueGrowing", 30, 59),
    ),
    Case(
        claim="gauges that have frozen are no queue",
        series=serving(tokens=0) | gauge("llm_requests_waiting", "9x360"),
        expect=quiet("LLMQueueGrowing", 30, 59),
    ),
    Case(
        claim="one failed scrape in four hides no queue",
        series=serving() | gauge("llm_requests_waiting", "9 9 9 _ " * 90),
        expect=[fires("30m", "LLMQueueGrowing", "")],
    ),
]

KV_CACHE = [
    Case(
        claim="a full KV cache and requests that wait",
        series=serving()
        | gauge("llm_kv_cache_usage_ratio", "0.5x60 0.99x200")
        | gauge("llm_requests_waiting", "6x360"),
        expect=[
            *quiet("LLMKVCachePressure", 10, 17),
            fires("22m", "LLMKVCachePressure", ',replica="a"'),
        ],
    ),
    Case(
        claim="a full KV cache and requests that are preempted",
        series=serving() | gauge("llm_kv_cache_usage_ratio", "0.99x360") | counter("llm_preemptions_total", (LONG, 1)),
        expect=[fires("12m", "LLMKVCachePressure", ',replica="a"')],
    ),
    Case(
        claim="a full KV cache alone is a good use of it",
        series=serving()
        | gauge("llm_kv_cache_usage_ratio", "1x360")
        | gauge("llm_requests_waiting", "0x360")
        | counter("llm_preemptions_total", (LONG, 0)),
        expect=quiet("LLMKVCachePressure", 30, 59),
    ),
    Case(
        claim="94 % is not full",
        series=serving() | gauge("llm_kv_cache_usage_ratio", "0.94x360") | gauge("llm_requests_waiting", "6x360"),
        expect=quiet("LLMKVCachePressure", 30, 59),
    ),
    Case(
        claim="all clients are gone and the gauges froze: nothing is full",
        series=serving(tokens=0)
        | gauge("llm_kv_cache_usage_ratio", "0.99x360")
        | gauge("llm_requests_waiting", "9x360"),
        expect=quiet("LLMKVCachePressure", 30, 59),
    ),
]

PREEMPTIONS = [
    Case(
        claim="three preemptions for each ten requests, and a restart in the middle",
        series=serving()
        | {f"llm_preemptions_total{{{TARGET}}}": f"{samples((180, 3))} {samples((180, 3))}"}
        | finished((LONG, 10)),
        expect=[fires("12m", "LLMPreemptionStorm", ""), fires("58m", "LLMPreemptionStorm", "")],
    ),
    Case(
        claim="one for each ten is the price of a full cache",
        series=serving() | counter("llm_preemptions_total", (LONG, 1)) | finished((LONG, 10)),
        expect=quiet("LLMPreemptionStorm", 20, 59),
    ),
    Case(
        claim="no requests and no preemptions, or hardly any",
        series=serving() | counter("llm_preemptions_total", (LONG - 1, 0), (1, 1)) | finished((LONG, 0)),
        expect=quiet("LLMPreemptionStorm", 20, 59),
    ),
]

REJECTIONS = [
    Case(
        claim="two in a hundred are turned away, for ten minutes",
        series=serving() | finished((LONG, 98)) | rejected((60, 0), (60, 2), (240, 0)),
        expect=[
            *quiet("LLMRequestsRejected", 10, 14),
            fires("21m", "LLMRequestsRejected", ""),
            *quiet("LLMRequestsRejected", 52),
        ],
    ),
    Case(
        claim="one in two hundred is not much, and neither are four within a quiet hour",
        series=serving() | finished((LONG, 199)) | rejected((LONG, 1)),
        expect=quiet("LLMRequestsRejected", 20, 59),
    ),
    Case(
        claim="four requests within a quiet hour, all turned away",
        series=serving() | finished((LONG, 0)) | rejected((100, 0), (4, 1), (256, 0)),
        expect=quiet("LLMRequestsRejected", 18, 25, 59),
    ),
]


def first_tokens(*phases: tuple[int, float | None]) -> dict[str, str]:
    within = counter("llm_time_to_first_token_seconds_bucket", *phases, more=',le="2.0"')
    return within | counter("llm_time_to_first_token_seconds_count", *phases)


ABORTS = [
    Case(
        claim="three in ten requests of vLLM get a first token and never end",
        series=first_tokens((LONG, 10)) | finished((LONG, 7)) | finished((LONG, 0), outcome="abort"),
        expect=[fires("50m", "LLMAbortSurge", "")],
    ),
    Case(
        claim="three in ten requests are booked as aborted",
        series=first_tokens((LONG, 10)) | finished((LONG, 7)) | finished((LONG, 3), outcome="abort"),
        expect=[fires("50m", "LLMAbortSurge", "")],
    ),
    Case(
        claim="one in ten is usual",
        series=first_tokens((LONG, 10)) | finished((LONG, 9)) | finished((LONG, 0), outcome="abort"),
        expect=quiet("LLMAbortSurge", 20, 59),
    ),
    Case(
        claim="failed requests are not aborted, and no request is none",
        series=first_tokens((180, 10), (180, 0))
        | finished((180, 7), (180, 0))
        | finished((180, 3), (180, 0), outcome="error"),
        expect=quiet("LLMAbortSurge", 20, 59),
    ),
    Case(
        claim="an engine that counts no first tokens cannot tell",
        series=finished((LONG, 7)) | finished((LONG, 3), outcome="abort"),
        expect=quiet("LLMAbortSurge", 20, 59),
    ),
]


def cache(*phases: tuple[int, float, float]) -> dict[str, str]:
    """Write samples, tokens looked up and tokens found."""
    sought = counter("llm_prefix_cache_query_tokens_total", *((count, sought) for count, sought, _ in phases))
    return sought | counter("llm_prefix_cache_hit_tokens_total", *((count, found) for count, _, found in phases))


PREFIX_CACHE = [
    Case(
        claim="60 % were found all day, and 20 % are now",
        series=cache((360, 100, 60), (60, 100, 20)),
        expect=[*quiet("LLMPrefixCacheCollapse", 359), fires("6h55m", "LLMPrefixCacheCollapse", "")],
        every="1m",
    ),
    Case(
        claim="60 % were found all day, and 40 % are now",
        series=cache((360, 100, 60), (60, 100, 40)),
        expect=quiet("LLMPrefixCacheCollapse", 359, 415),
        every="1m",
    ),
    Case(
        claim="a cache that never found much cannot lose it, and without requests nothing is lost",
        series=cache((200, 100, 15), (160, 0, 0), (60, 100, 2)),
        expect=quiet("LLMPrefixCacheCollapse", 199, 350, 415),
        every="1m",
    ),
]


def test_a_queue_that_does_not_drain_is_told(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, RULES, QUEUE)


def test_a_full_kv_cache_is_told_where_requests_suffer(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, RULES, KV_CACHE)


def test_preemptions_are_told_where_they_are_many(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, RULES, PREEMPTIONS)


def test_rejections_are_told(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, RULES, REJECTIONS)


def test_clients_that_hang_up_are_told(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, RULES, ABORTS)


def test_a_prefix_cache_that_was_lost_is_told(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, replace(RULES, evaluate="1m"), PREFIX_CACHE)


def test_each_model_has_its_own_limits(promtools: Tool, tmp_path: Path) -> None:
    table = ThresholdTable(models={"org/a&b": Thresholds(queue=20, rejected=Decimal("0.05"))})
    case = Case(
        claim="9 may wait of 20, and 2 % of 5 % be turned away",
        series=serving() | gauge("llm_requests_waiting", "9x360") | finished((LONG, 98)) | rejected((LONG, 2)),
        expect=[*quiet("LLMQueueGrowing", 40), *quiet("LLMRequestsRejected", 40)],
    )
    run(promtools, tmp_path, replace(RULES, fleet=replace(RULES.fleet, thresholds=table)), [case])


FORECAST = replace(RULES, stages=("load", "days", "alerts-capacity"), evaluate="10m")
DAYS = [
    Case(
        claim="a tenth more of the cache every other day is full within a week; a day is not enough to say so",
        series=gauge("llm_kv_cache_usage_ratio", "0.2+0.00035x1200"),
        expect=[
            Expect(at=at, expr='ALERTS{alertstate="firing"}', samples=samples_)
            for at, samples_ in (
                ("60h", {}),
                (
                    "190h",
                    {f'ALERTS{{alertname="LLMCapacityForecast",alertstate="firing",severity="ticket",{MODEL}}}': 1.0},
                ),
            )
        ],
        every="10m",
    ),
    Case(
        claim="days that are busy, and nights that are not, are the same every day",
        series=gauge("llm_kv_cache_usage_ratio", f"{'0.8 ' * 72}{'0.1 ' * 72}" * 8),
        expect=[Expect(at=at, expr='ALERTS{alertstate="firing"}') for at in ("100h", "150h", "190h")],
        every="10m",
    ),
]


def test_a_cache_that_will_be_full_in_a_week_is_told(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, FORECAST, DAYS)
