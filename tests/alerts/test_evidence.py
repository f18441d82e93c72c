"""Alerts about the numbers that objectives are judged by, in promtool."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from alerts.groups.evidence import silence
from exporter.fleet import Fleet, Replica
from exporter.objectives import Objectives, RatioObjective
from prometheus.indicators import AVAILABILITY, TTFT_INDICATOR
from running.tools import Tool
from tests.alerts.traffic import MODEL, traffic
from tests.prometheus.promtool import Case, Expect, Rules, run, samples

FLEET = Fleet(replicas=(Replica(name="a", url="http://127.0.0.1:8000"),))
RULES = Rules(
    fleet=FLEET,
    stages=("indicators-1h", "indicators", "burn", "load", "work", "latency", "evidence", "alerts-evidence"),
    evaluate="1m",
)
NAMED = f'model="{MODEL}"'
TARGET = f'{NAMED},replica="vllm-a",engine="vllm"'
HOUR = 120  # samples of 30 s


def fires(at: str, alertname: str, *labels: str) -> Expect:
    series = f'ALERTS{{alertname="{alertname}",alertstate="firing"'
    return Expect(
        at=at,
        expr=f"{series}}}",
        samples={f'{series},severity="ticket",{each}}}': 1.0 for each in labels},
    )


def slo(*names: str) -> list[str]:
    return [f'{NAMED},slo="{name}"' for name in names]


def tokens(*phases: tuple[int, float | None]) -> dict[str, str]:
    return {f"llm_generation_tokens_total{{{TARGET}}}": samples(*phases)}


@pytest.mark.parametrize(
    ("objective", "days", "minutes"), [("0.9", 30, 60), ("0.95", 30, 43), ("0.99", 30, 15), ("0.95", 7, 15)]
)
def test_an_indicator_may_be_silent_while_a_fiftieth_of_its_budget_could_go(
    objective: str, days: int, minutes: int
) -> None:
    objectives = Objectives(availability=RatioObjective(objective=Decimal(objective)))
    assert silence(AVAILABILITY, timedelta(days=days), objectives) == timedelta(minutes=minutes)
    assert silence(TTFT_INDICATOR, timedelta(days=30), objectives) == timedelta(minutes=43)


GONE = " stale"
NO_DATA = [
    Case(
        claim="an upgrade renames the histogram of first tokens, and everything else goes on",
        series=traffic((3 * HOUR, 100, 0), slos=("itl", "availability"))
        | traffic((HOUR, 100, 0), slos=("ttft",), end=GONE)
        | tokens((3 * HOUR, 900)),
        expect=[fires("105m", "LLMIndicatorNoData"), fires("115m", "LLMIndicatorNoData", *slo("ttft"))],
        every="30s",
    ),
    Case(
        claim="a histogram that stands still while tokens flow is as good as gone",
        series=traffic((HOUR, 100, 0), (2 * HOUR, 0, 0), slos=("itl",)) | tokens((3 * HOUR, 900)),
        expect=[fires("100m", "LLMIndicatorNoData"), fires("120m", "LLMIndicatorNoData", *slo("itl"))],
        every="30s",
    ),
    Case(
        claim="outcomes are missed after a quarter of an hour, for their budget is small",
        series=traffic((HOUR, 100, 0), slos=("availability",), end=GONE) | tokens((3 * HOUR, 900)),
        expect=[fires("77m", "LLMIndicatorNoData"), fires("87m", "LLMIndicatorNoData", *slo("availability"))],
        every="30s",
    ),
    Case(
        claim="a model without requests has no data, and that is no trouble; nor is one that is gone",
        series=traffic((HOUR, 100, 0), (2 * HOUR, 0, 0)) | tokens((HOUR, 900), (2 * HOUR, 0)),
        expect=[fires("150m", "LLMIndicatorNoData"), fires("179m", "LLMIndicatorNoData")],
        every="30s",
    ),
    Case(
        claim="an engine that never told has nothing to lose",
        series=tokens((3 * HOUR, 900)),
        expect=[fires("179m", "LLMIndicatorNoData")],
        every="30s",
    ),
    Case(
        claim="one failed scrape in four, and a restart, leave data",
        series={
            name: f"{values} {values}"
            for name, values in traffic(*[(3, 100, 0), (1, None, None)] * (HOUR // 3)).items()
        }
        | tokens(*[(3, 900), (1, None)] * (2 * HOUR // 3)),
        expect=[fires("100m", "LLMIndicatorNoData"), fires("150m", "LLMIndicatorNoData")],
        every="30s",
    ),
    Case(
        claim="first tokens that come at once, in requests of six seconds, are not to be believed",
        series=traffic((HOUR, 150, 0), slos=("ttft",))
        | tokens((HOUR, 900))
        | {
            f"llm_time_to_first_token_seconds_sum{{{TARGET}}}": samples((HOUR, 0.006)),
            f"llm_request_duration_seconds_count{{{TARGET}}}": samples((HOUR, 150)),
            f"llm_request_duration_seconds_sum{{{TARGET}}}": samples((HOUR, 900)),
        },
        expect=[fires("20m", "LLMIndicatorNoData", *slo("ttft"))],
        every="30s",
    ),
]

RENAMED = [
    Case(
        claim="two replicas lack a series after their upgrade: one ticket for each series, not for each replica",
        series={
            f'llm_replica_missing_series{{engine="vllm",replica="{replica}",metric="{metric}"}}': "_x20 1x60"
            for replica in "ab"
            for metric in ("llm_kv_cache_usage_ratio", "llm_preemptions_total")
        },
        expect=[
            fires("12m", "LLMMetricsRenamed"),
            fires(
                "17m",
                "LLMMetricsRenamed",
                'engine="vllm",metric="llm_kv_cache_usage_ratio"',
                'engine="vllm",metric="llm_preemptions_total"',
            ),
        ],
        every="30s",
    ),
    Case(
        claim="a page that was cut once lacks nothing for long; one scrape in four that fails hides nothing",
        series={
            'llm_replica_missing_series{engine="vllm",replica="a",metric="llm_preemptions_total"}': "1 1 1 stale " * 30,
            'llm_replica_missing_series{engine="sglang",replica="b",metric="llm_preemptions_total"}': "stale",
        },
        expect=[fires("20m", "LLMMetricsRenamed", 'engine="vllm",metric="llm_preemptions_total"')],
        every="30s",
    ),
]

TTFT = "llm_time_to_first_token_seconds"


def buckets(name: str = TTFT, count: int = 3 * HOUR, **bounds: float) -> dict[str, str]:
    """Write a histogram that grows: `b2_5=10` is ten more within le="2.5" with each sample."""
    return {
        f'{name}_bucket{{{TARGET},le="{bound[1:].replace("_", ".") if bound != "inf" else "+Inf"}"}}': samples(
            (count, each)
        )
        for bound, each in bounds.items()
    }


SATURATED = [
    Case(
        claim="one in ten requests is beyond the last bound",
        series=buckets(b2560_0=90, inf=100),
        expect=[
            fires("40m", "LLMHistogramSaturated", *slo("ttft")),
            Expect(at="40m", expr="round(model:llm_slo_beyond:ratio1h, 1e-6)", samples={f"{{{slo('ttft')[0]}}}": 0.1}),
        ],
        every="30s",
    ),
    Case(
        claim="a histogram without any bound tells nothing",
        series=buckets(b2560_0=0, inf=100),
        expect=[fires("40m", "LLMHistogramSaturated", *slo("ttft"))],
        every="30s",
    ),
    Case(
        claim="one in two hundred is beyond it, or nothing was observed at all",
        series=buckets(b2560_0=199, inf=200) | buckets("llm_time_per_output_token_seconds", b80_0=0, inf=0),
        expect=[fires("40m", "LLMHistogramSaturated"), fires("170m", "LLMHistogramSaturated")],
        every="30s",
    ),
]


def exact(value: int, of: str = "ttft") -> dict[str, str]:
    return {f'llm_slo_threshold_exact{{{TARGET},slo="{of}"}}': f"{value}x{3 * HOUR}"}


THRESHOLDS = [
    Case(
        claim="one in ten requests lies between 1 s and 2.5 s, and the engine has no bound at 2 s",
        series=buckets(b1_0=88, b2_5=98, inf=100) | exact(0),
        expect=[fires("50m", "LLMThresholdNotExact"), fires("110m", "LLMThresholdNotExact", *slo("ttft"))],
        every="30s",
    ),
    Case(
        claim="the engine has the bound",
        series=buckets(b1_0=88, b2_5=98, inf=100) | exact(1),
        expect=[fires("170m", "LLMThresholdNotExact")],
        every="30s",
    ),
    Case(
        claim="hardly a request lies where it is in doubt: 3 of 5 in a hundred that may be bad",
        series=buckets(b1_0=95, b2_5=98, inf=100) | exact(0),
        expect=[fires("170m", "LLMThresholdNotExact")],
        every="30s",
    ),
    Case(
        claim="no requests, no doubt",
        series=buckets(b1_0=0, b2_5=0, inf=0) | exact(0),
        expect=[fires("170m", "LLMThresholdNotExact")],
        every="30s",
    ),
]


def test_an_indicator_without_data_is_told(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, RULES, NO_DATA)


def test_series_that_are_missing_are_told(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, replace(RULES, stages=("alerts-evidence",)), RENAMED)


def test_a_histogram_that_ends_too_early_is_told(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, replace(RULES, stages=("latency", "evidence", "alerts-evidence")), SATURATED)


def test_a_threshold_between_two_bounds_is_told_where_it_matters(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, replace(RULES, stages=("latency", "evidence", "alerts-evidence")), THRESHOLDS)
