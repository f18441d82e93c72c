"""Recorded series, in promtool: what goes in by hand comes out as counted by hand."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from exporter.fleet import Fleet, Replica
from exporter.objectives import LatencyObjective, Objectives, Slos
from running.tools import Tool
from tests.prometheus.promtool import Case, Expect, Rules, run, samples

FLEET = Fleet(replicas=(Replica(name="a", url="http://127.0.0.1:8000"),))
STAGES = ("indicators-1h", "indicators-5m-replicas", "burn-5m", "load", "work", "latency")
TTFT = "llm_time_to_first_token_seconds"
TPOT = "llm_time_per_output_token_seconds"
A = 'model="m",replica="a"'
B = 'model="m",replica="b"'


def steps(increment: float, *, start: float = 0, count: int = 60) -> str:
    return samples((count, increment), start=start)


def recorded(name: str, value: float, labels: str = 'model="m"', at: str = "8m") -> Expect:
    return Expect(at=at, expr=f"round({name}, 1e-6)", samples={f"{{{labels}}}": value})


def share(name: str, value: float) -> Expect:
    """Expect a ratio of the recorded good and total rates."""
    expr = f"round(model:llm_{name}_good:rate5m / model:llm_{name}_total:rate5m, 1e-6)"
    return Expect(at="8m", expr=expr, samples={'{model="m"}': value})


def nothing(expr: str, at: str = "8m") -> Expect:
    return Expect(at=at, expr=expr)


def finished(target: str, outcome: str, values: str) -> dict[str, str]:
    return {f'llm_requests_finished_total{{{target},outcome="{outcome}"}}': values}


def rejected(target: str, values: str) -> dict[str, str]:
    return {f'llm_requests_rejected_total{{{target},reason="queue_requests"}}': values}


def histogram(name: str, target: str, **bounds: float) -> dict[str, str]:
    """Write a histogram whose buckets grow by so much per sample: b0_1=10 is le="0.1", inf=10 is +Inf and count."""
    buckets = {
        f'{name}_bucket{{{target},le="{bound[1:].replace("_", ".") if bound != "inf" else "+Inf"}"}}': steps(growth)
        for bound, growth in bounds.items()
    }
    return {**buckets, f"{name}_count{{{target}}}": steps(bounds["inf"])}


AVAILABILITY_CASES = [
    Case(
        claim="rejections have no rank, finishes have one: both count for the model",
        series=finished(f'{A},rank="0"', "stop", steps(10))
        | finished(f'{A},rank="1"', "stop", steps(10))
        | rejected(A, steps(1)),
        expect=[share("availability", 0.952381), recorded("model:llm_availability_total:rate5m", 2.1)],
    ),
    Case(
        claim="an engine that knows no rejections has an availability",
        series=finished(A, "stop", steps(9)) | finished(A, "error", steps(1)),
        expect=[share("availability", 0.9)],
    ),
    Case(
        claim="a replica that has never failed, and so has no series of failures, is available to all",
        series=finished(A, "stop", steps(9)),
        expect=[share("availability", 1), recorded("model:llm_slo_burn:rate5m", 0, 'model="m",slo="availability"')],
    ),
    Case(
        claim="one of two replicas restarts: its last step is lost, the other one's count is no burst",
        series=finished(A, "stop", f"{samples((10, 60), start=1000)} {samples((10, 60))}")
        | finished(B, "stop", samples((20, 60), start=100_000)),
        expect=[recorded("model:llm_availability_total:rate5m", 3.777778, at="7m10s")],
        every="30s",
    ),
    Case(
        claim="the first failure after a quiet start counts, since its series was there at 0",
        series=finished(A, "stop", steps(1)) | finished(A, "error", f"{'0 ' * 20}{'1 ' * 40}"),
        expect=[
            Expect(
                at="5m5s",
                expr="round((model:llm_availability_total:rate5m - model:llm_availability_good:rate5m) * 300)",
                samples={'{model="m"}': 1},
            )
        ],
    ),
    Case(
        claim="8 of 150 requests got an answer, whatever HTTP says of the others",
        series=finished(A, "length", steps(8)) | rejected(A, steps(142)),
        expect=[share("availability", 0.053333)],
    ),
    Case(
        claim="7 of 100 streams died after their first byte",
        series=finished(A, "stop", steps(93)) | finished(A, "error", steps(7)),
        expect=[share("availability", 0.93)],
    ),
    Case(
        claim="a client that hangs up is shown, not counted",
        series=finished(A, "stop", steps(8)) | finished(A, "error", steps(2)) | finished(A, "abort", steps(90)),
        expect=[
            share("availability", 0.8),
            recorded("model:llm_availability_total:rate5m", 1),
            recorded('model_outcome:llm_requests_finished:rate1m{outcome="abort"}', 9, 'model="m",outcome="abort"'),
            recorded("model:llm_requests:rate1m", 10),
        ],
    ),
    Case(
        claim="a replica that only rejects, or only fails, is known and not available",
        series=rejected(A, steps(10)) | finished('model="n",replica="n"', "error", steps(10)),
        expect=[
            Expect(
                at="8m",
                expr="model:llm_availability_good:rate5m / model:llm_availability_total:rate5m",
                samples={'{model="m"}': 0, '{model="n"}': 0},
            )
        ],
    ),
    Case(
        claim="a replica that served nothing has no availability, and 0 is not 100 %",
        series=finished(A, "stop", steps(0)) | finished(A, "error", steps(0)),
        expect=[recorded("model:llm_availability_total:rate5m", 0), nothing("model:llm_slo_burn:rate5m")],
    ),
]

LATENCY_CASES = [
    Case(
        claim="replicas are summed before a ratio is taken, so a small slow one weighs little",
        series=histogram(TTFT, A, b2_0=990, inf=990) | histogram(TTFT, B, b2_0=0, inf=10),
        expect=[share("ttft", 0.99), recorded('replica:llm_ttft_good:rate5m{replica="b"}', 0, B)],
    ),
    Case(
        claim="the 95th percentile is that of all requests, not the mean of the replicas' percentiles",
        series=histogram(TTFT, A, b0_1=990, b1_0=990, b5_0=990, inf=990)
        | histogram(TTFT, B, b0_1=0, b1_0=0, b5_0=10, inf=10),
        expect=[
            recorded("model:llm_ttft_seconds:p95_5m", 0.09596),
            recorded("model:llm_ttft_seconds:p50_5m", 0.050505),
        ],
    ),
    Case(
        claim="a percentile beyond the last bound is that bound",
        series=histogram(TTFT, A, b5_0=80, b10_0=90, inf=100),
        expect=[recorded("model:llm_ttft_seconds:p95_5m", 10)],
    ),
    Case(
        claim="a percentile within the first bound is a straight line from 0, however fast the requests are",
        series=histogram(TTFT, A, b0_3=100, b0_5=100, inf=100),
        expect=[recorded("model:llm_ttft_seconds:p95_5m", 0.285)],
    ),
    Case(
        claim="without a finite bound, or without requests, there is no percentile",
        series=histogram(TTFT, A, inf=10) | histogram(TPOT, A, b0_1=0, inf=0),
        expect=[nothing("model:llm_ttft_seconds:p95_5m"), nothing("model:llm_itl_seconds:p95_5m")],
    ),
    Case(
        claim="goodput lies between the bounds, and is not their product",
        series=histogram(TTFT, A, b2_0=90, inf=100)
        | histogram(TPOT, A, b0_1=90, inf=100)
        | finished(A, "stop", steps(100))
        | finished(A, "error", steps(0)),
        expect=[recorded("model:llm_goodput_good:rate5m", 8), recorded("model:llm_goodput_upper:rate5m", 9)],
    ),
    Case(
        claim="goodput is never less than nothing, and never more than what was answered",
        series=histogram(TTFT, A, b2_0=20, inf=50)
        | histogram(TPOT, A, b0_1=10, inf=50)
        | finished(A, "stop", steps(50))
        | rejected(A, steps(50)),
        expect=[recorded("model:llm_goodput_good:rate5m", 0), recorded("model:llm_goodput_upper:rate5m", 5)],
    ),
]

OTHER_CASES = [
    Case(
        claim="a restart costs one step, not a spike",
        series={
            f"llm_generation_tokens_total{{{A}}}": f"{samples((10, 60), start=1000)} {samples((40, 60))}",
            f"llm_generation_tokens_total{{{B}}}": samples((60, 120), start=100_000),
        },
        expect=[
            Expect(at=at, expr=f"model:llm_generation_tokens:rate1m {bound}", samples={'{model="m"}': 1})
            for at in ("105s", "115s", "125s", "135s", "4m")
            for bound in ("> bool 15", "< bool 18.1")
        ],
    ),
    Case(
        claim="throughput comes from counters that grow with every step, not from sums booked at the end",
        series={f"llm_generation_tokens_total{{{A}}}": steps(200)}
        | {f"llm_request_generation_tokens_sum{{{A}}}": samples((30, 0), (1, 6000))},
        expect=[recorded("model:llm_generation_tokens:rate1m", 20, at="3m")],
    ),
    Case(
        claim="hits are divided by look-ups",
        series={
            f"llm_prefix_cache_hit_tokens_total{{{A}}}": steps(75),
            f"llm_prefix_cache_query_tokens_total{{{A}}}": steps(100),
            'llm_prefix_cache_hit_tokens_total{model="idle",replica="c"}': steps(0),
            'llm_prefix_cache_query_tokens_total{model="idle",replica="c"}': steps(0),
        },
        expect=[recorded("model:llm_prefix_cache_hits:ratio5m", 0.75)],
    ),
    Case(
        claim="replicas are counted by state, and a replica whose model is unknown is not lost",
        series={
            f'llm_replica_state{{model="m",replica="{replica}",state="{state}"}}': f"{int(found == state)}x60"
            for replica, found in {"a": "ready", "b": "ready", "c": "sleeping"}.items()
            for state in ("ready", "sleeping", "broken")
        },
        expect=[
            recorded("model:llm_replicas_ready:count", 2),
            recorded("model:llm_replicas:count", 3),
            recorded('model_state:llm_replicas:count{state="sleeping"}', 1, 'model="m",state="sleeping"'),
            recorded('model_state:llm_replicas:count{state="broken"}', 0, 'model="m",state="broken"'),
        ],
    ),
    Case(
        claim="load adds up over replicas and ranks; the fullest cache is shown beside the mean",
        series={
            f'llm_requests_running{{{A},rank="0"}}': "3x60",
            f'llm_requests_running{{{A},rank="1"}}': "4x60",
            f"llm_requests_running{{{B}}}": "5x60",
            f"llm_requests_waiting{{{B}}}": "2x60",
            f'llm_kv_cache_usage_ratio{{{A},rank="0"}}': "0.1x60",
            f'llm_kv_cache_usage_ratio{{{A},rank="1"}}': "0.2x60",
            f"llm_kv_cache_usage_ratio{{{B}}}": "0.9x60",
        },
        expect=[
            recorded("model:llm_requests_running:sum", 12),
            recorded("model:llm_requests_waiting:sum", 2),
            recorded("model:llm_kv_cache_usage_ratio:avg", 0.4),
            recorded("model:llm_kv_cache_usage_ratio:max", 0.9),
        ],
    ),
]


def test_availability_counts_everything_that_got_no_answer(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, Rules(fleet=FLEET, stages=STAGES), AVAILABILITY_CASES)


def test_latencies_are_those_of_all_requests(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, Rules(fleet=FLEET, stages=STAGES), LATENCY_CASES)


def test_load_and_work_are_those_of_all_replicas(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, Rules(fleet=FLEET, stages=STAGES), OTHER_CASES)


def test_each_model_is_judged_by_its_own_threshold(promtools: Tool, tmp_path: Path) -> None:
    names = ("org/a&b", 'quo"te', "b.c|d", "default", "learned later")
    fast = LatencyObjective(threshold=timedelta(milliseconds=800), objective=Objectives().ttft.objective)
    exact = LatencyObjective(threshold=timedelta(milliseconds=500), objective=Objectives().ttft.objective)
    slos = Slos(
        models={
            "org/a&b": replace(Objectives(), ttft=fast),
            'quo"te': replace(Objectives(), ttft=fast),
            "b.c|d": replace(Objectives(), ttft=exact),
        }
    )
    series: dict[str, str] = {}
    for name in names:
        escaped = name.replace('"', '\\"')
        series |= histogram(TTFT, f'model="{escaped}",replica="r"', b0_5=50, b0_8=80, b2_0=95, inf=100)
    expected = {"org/a&b": 0.8, 'quo\\"te': 0.8, "b.c|d": 0.5, "default": 0.95, "learned later": 0.95}
    case = Case(
        claim="two models within 800 ms, one within 500 ms, all others within 2 s",
        series=series,
        expect=[
            Expect(
                at="8m",
                expr=f"round(model:llm_ttft_good:rate{window} / model:llm_ttft_total:rate{window}, 0.001)",
                samples={f'{{model="{name}"}}': value for name, value in expected.items()},
            )
            for window in ("5m", "30m", "1h")
        ],
    )
    run(promtools, tmp_path, Rules(fleet=replace(FLEET, slos=slos), stages=STAGES), [case])


def test_a_window_of_tiles_counts_what_was_before_and_nothing_twice(promtools: Tool, tmp_path: Path) -> None:
    hour = 120
    rises = samples((hour, 30), (hour, 90), (hour // 2, 0))
    comes_and_goes = f"{samples((hour, 30))} stale"
    series = {
        f'llm_requests_finished_total{{model="{name}",replica="{name}",outcome="stop"}}': values
        for name, values in (("changes", rises), ("gone", comes_and_goes))
    }
    good = "model:llm_availability_good:rate"

    def expect(at: str, window: str, **rates: float) -> Expect:
        return Expect(
            at=at,
            expr=f"round({good}{window}, 1e-3)",
            samples={f'{{model="{model}"}}': rate for model, rate in rates.items()},
        )

    cases = [
        Case(
            claim="a request is in one tile, and stays there after its model is gone",
            series=series,
            every="30s",
            expect=[
                expect("60m", "1h", changes=1, gone=1),
                expect("75m", "30m", changes=2, gone=0.5),
                expect("75m", "1h", changes=1.5, gone=0.75),
                expect("90m", "30m", changes=3),
                expect("90m", "1h", changes=2, gone=0.5),
                expect("135m", "1h", changes=2.25),
            ],
        )
    ]
    run(promtools, tmp_path, Rules(fleet=FLEET, stages=STAGES, evaluate="30s"), cases)
