"""Stories of `alerts/groups/evidence.py`."""

from collections.abc import Mapping

from tests.alerts.stories.lines import GONE, Lines, counter, gauge
from tests.alerts.stories.situations import Situation, Story, Told, Variant

TARGET = 'model="@",replica="a",engine="vllm"'
TTFT, TPOT = "llm_time_to_first_token_seconds", "llm_time_per_output_token_seconds"
NO_BUCKETS = {Situation.REBUCKETED: "no bucket of a histogram is read"}
HOUR = 120
LONG = 3 * HOUR
SERIES = {
    "ttft": (f'{TTFT}_bucket{{{TARGET},le="2.0"}}', f"{TTFT}_count{{{TARGET}}}"),
    "itl": (f'{TPOT}_bucket{{{TARGET},le="0.1"}}', f"{TPOT}_count{{{TARGET}}}"),
    "availability": (f'llm_requests_finished_total{{{TARGET},outcome="stop"}}',),
}
TOKENS = {f"llm_generation_tokens_total{{{TARGET}}}": counter((LONG, 900), start=7)}


def silent(slo: str) -> Lines:
    """Let what an objective counts leave the page after an hour, while tokens flow."""
    return TOKENS | {name: (*counter((HOUR, 100), start=7), GONE) for name in SERIES[slo]}


def speaks(slo: str) -> Lines:
    return TOKENS | {name: counter((LONG, 100), start=7) for name in SERIES[slo]}


def took(first: float, whole: float) -> Lines:
    """Write the seconds of first tokens and of whole requests."""
    seconds = {TTFT: first, "llm_request_duration_seconds": whole}
    written = {f"{name}_count{{{TARGET}}}": counter((HOUR, 100), start=7) for name in seconds}
    sums = {f"{name}_sum{{{TARGET}}}": counter((HOUR, 100 * each), start=7) for name, each in seconds.items()}
    within = {SERIES["ttft"][0]: counter((HOUR, 100), start=7)}
    return written | sums | within | {name: line[:HOUR] for name, line in TOKENS.items()}


def no_data(slo: str, fires: int) -> Story:
    bound_gone = {series: speaks(slo)[series] for series in speaks(slo) if "_bucket{" not in series}
    return Story(
        alert="LLMIndicatorNoData",
        labels=f'model="@",slo="{slo}"',
        trouble=silent(slo),
        below={"it has data": speaks(slo)},
        fires=fires,
        stages=(
            "indicators-1h",
            *(f"{of}-{window}" for of in ("indicators", "burn") for window in ("5m", "1d")),
            "work",
            "alerts-evidence",
        ),
        every=30,
        evaluate=70,
        middle=HOUR + 20,
        over=50 * 60,
        instead={
            Situation.REBUCKETED: (
                Variant(
                    situation=Situation.REBUCKETED,
                    of="the bound of the threshold vanishes",
                    lines=bound_gone | {s: line for s, line in silent(slo).items() if "_bucket{" in s},
                    told=(Told(at=fires, fires=True),),
                ),
            )
        },
        cannot={} if slo != "availability" else NO_BUCKETS,
    )


def lacking(value: int) -> Lines:
    series = 'llm_replica_missing_series{engine="@",replica="a",metric="llm_preemptions_total"}'
    return {series: gauge((30, 0), (90, value))}


def slow(metric: str, last: str, beyond: float) -> Lines:
    """Write requests of which a share is beyond the last bound."""
    each = {"1.0": 50, last: 100 * (1 - beyond), "+Inf": 100}
    return {f'{metric}_bucket{{{TARGET},le="{le}"}}': counter((180, many), start=7) for le, many in each.items()}


def doubtful(metric: str, bounds: Mapping[str, float], *exact: tuple[int, int], slo: str) -> Lines:
    """Write requests as they lie within bounds, and whether the threshold is one of them."""
    buckets = {f'{metric}_bucket{{{TARGET},le="{le}"}}': counter((260, many), start=7) for le, many in bounds.items()}
    return buckets | {f'llm_slo_threshold_exact{{{TARGET},slo="{slo}"}}': gauge(*exact)}


def guessed(slo: str, metric: str, lower: str, upper: str) -> Story:
    def lines(share: float, *exact: tuple[int, int]) -> Lines:
        return doubtful(metric, {lower: 90 - 100 * share, upper: 90, "+Inf": 100}, *exact, slo=slo)

    def changed(of: str, exact: int, *, fires: bool) -> Variant:
        told = (Told(at=7770, fires=True),) if fires else (Told(at=7770, fires=False, since=0),)
        series = lines(0.055, (60, 1 - exact), (200, exact))
        return Variant(situation=Situation.REBUCKETED, of=of, lines=series, told=told)

    return Story(
        alert="LLMThresholdNotExact",
        labels=f'model="@",slo="{slo}"',
        trouble=lines(0.055, (260, 0)),
        below={"4.5 in a hundred": lines(0.045, (260, 0)), "a bound": lines(0.055, (260, 1))},
        fires=3990,
        stages=("latency", "evidence", "alerts-evidence"),
        every=30,
        evaluate=70,
        middle=80,
        over=4200,
        instead={
            Situation.REBUCKETED: (
                changed("an upgrade brings the bound", 1, fires=False),
                changed("an upgrade takes the bound", 0, fires=True),
            )
        },
    )


STORIES = (
    no_data("ttft", 6720),
    no_data("itl", 6720),
    no_data("availability", 5040),
    Story(
        alert="LLMIndicatorNoData",
        labels='model="@",slo="ttft"',
        trouble=took(0.0009, 1.1),
        below={"first tokens take a millisecond": took(0.0011, 1.1), "requests are short": took(0.0009, 0.9)},
        well=took(0.3, 1.1),
        fires=420,
        stages=("indicators-1h", "burn-30m", "work", "alerts-evidence"),
        every=30,
        evaluate=70,
        middle=40,
        over=40 * 60,
        cannot=NO_BUCKETS,
    ),
    Story(
        alert="LLMMetricsRenamed",
        labels='engine="@",metric="llm_preemptions_total"',
        trouble=lacking(1),
        below={"nothing is missing": lacking(0)},
        fires=630,
        stages=("alerts-evidence",),
        middle=40,
        over=700,
        cannot={
            **NO_BUCKETS,
            Situation.NO_TRAFFIC: "a page shows its series without requests",
            Situation.RESET: "a gauge does not count",
        },
    ),
    *(
        Story(
            alert="LLMHistogramSaturated",
            labels=f'model="@",slo="{slo}"',
            trouble=slow(metric, last, 0.011),
            below={"nine of a thousand": slow(metric, last, 0.009)},
            fires=1260,
            stages=("latency", "evidence", "alerts-evidence"),
            every=30,
            evaluate=70,
            middle=50,
            over=4200,
            kept_bounds=last,
        )
        for slo, metric, last in (("ttft", TTFT, "2560.0"), ("itl", TPOT, "80.0"))
    ),
    guessed("ttft", TTFT, "1.0", "2.5"),
    guessed("itl", TPOT, "0.075", "0.15"),
)
