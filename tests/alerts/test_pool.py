"""Alerts about one replica beside the others of its pool, in promtool."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from alerts.catalogue import alert
from exporter.fleet import Fleet, ModelPolicy, Replica
from exporter.thresholds import Thresholds, ThresholdTable
from running.tools import Tool
from tests.alerts.test_replica_alerts import states
from tests.prometheus.promtool import Case, Expect, Rules, run, samples

FLEET = Fleet(
    replicas=(Replica(name="a", url="http://127.0.0.1:8000"),),
    models={"batch": ModelPolicy(min_ready=0)},
    spare_replicas=1,
)
RULES = Rules(fleet=FLEET, stages=("load", "peers", "alerts-pool"))
MODEL = 'model="org/a&b"'


def fires(at: str, alertname: str, *labels: str) -> Expect:
    series = f'ALERTS{{alertname="{alertname}",alertstate="firing"'
    return Expect(
        at=at,
        expr=f"{series}}}",
        samples={f'{series},severity="ticket",{MODEL}{each}}}': 1.0 for each in labels},
    )


def tokens(replica: str, *phases: tuple[int, float | None]) -> dict[str, str]:
    """Write the tokens of a replica; each phase is a life of its process: scrapes, and tokens per scrape."""
    lives = (samples(phase) for phase in phases)
    return {f'llm_generation_tokens_total{{{MODEL},replica="{replica}"}}': " ".join(lives)}


OUTAGE = ((30, "ready"), (6, "unreachable"))
FLAPPING = [
    Case(
        claim="three outages within an hour are told, and two are not",
        series=states("a", *OUTAGE * 3, (300, "ready")) | states("b", *OUTAGE * 2, (300, "ready")),
        expect=[
            fires("17m", "LLMReplicaFlapping"),
            fires("18m30s", "LLMReplicaFlapping", ',replica="a"'),
            fires("55m", "LLMReplicaFlapping", ',replica="a"'),
            fires("67m", "LLMReplicaFlapping"),
        ],
    ),
    Case(
        claim="restarts between two scrapes show in the counters alone",
        series=states("a", (200, "ready")) | tokens("a", (30, 50), (30, 50), (30, 50), (90, 50)),
        expect=[fires("15m", "LLMReplicaFlapping"), fires("16m", "LLMReplicaFlapping", ',replica="a"')],
    ),
    Case(
        claim="scrapes that Prometheus loses are no outages, and neither is a label that is new",
        series=states("a", *((3, "ready"), (1, "lost")) * 50)
        | {name: f"{'_ ' * 200}{values}" for name, values in states("a", (60, "ready"), model="org/a&b").items()},
        expect=[fires(f"{minute}m", "LLMReplicaFlapping") for minute in (5, 20, 32, 40)],
    ),
    Case(
        claim="a model that may be off comes and goes as it likes",
        series=states("a", *OUTAGE * 6, model="batch")
        | {'llm_generation_tokens_total{model="batch",replica="a"}': " ".join([samples((30, 50))] * 6)},
        expect=[fires(f"{minute}m", "LLMReplicaFlapping") for minute in range(5, 40, 5)],
    ),
    Case(
        claim="one scrape in four that the replica does not answer is coming and going",
        series=states("a", *((3, "ready"), (1, "unreachable")) * 50),
        expect=[fires("5m", "LLMReplicaFlapping", ',replica="a"')],
    ),
]

SPARE = [
    Case(
        claim="one of two is missing and one may fail: the spare is gone after a quarter of an hour",
        series=states("a", (300, "ready")) | states("b", (60, "ready"), (120, "unreachable"), (120, "ready")),
        expect=[
            fires("14m", "LLMNoSpareReplica"),
            fires("22m", "LLMNoSpareReplica", ""),
            fires("29m", "LLMNoSpareReplica", ""),
            fires("37m", "LLMNoSpareReplica"),
        ],
    ),
    Case(
        claim="a short restart and a planned sleep cost no spare, and neither do scrapes that fail in another model",
        series=states("a", (300, "ready"))
        | states("b", (60, "ready"), (18, "loading"), (222, "ready"))
        | states("c", (300, "sleeping"))
        | states("d", *((3, "ready"), (1, "unreachable")) * 75, model="other"),
        expect=[fires(f"{minute}m", "LLMNoSpareReplica") for minute in range(5, 50, 3)],
    ),
    Case(
        claim="scrapes that fail hide no missing spare",
        series=states("a", *((3, "ready"), (1, "lost")) * 60) | states("b", *((3, "unreachable"), (1, "lost")) * 60),
        expect=[fires("20m", "LLMNoSpareReplica", ""), fires("39m", "LLMNoSpareReplica", "")],
    ),
    Case(
        claim="a model without any replica is down, not without a spare; one that may scale to zero has none to lose",
        series=states("a", (120, "unreachable"))
        | states("b", (120, "ready"), model="batch")
        | states("c", (120, "unreachable"), model="batch"),
        expect=[fires("19m", "LLMNoSpareReplica")],
    ),
]

COLD = [
    Case(
        claim="ten minutes of loading are too many, and it is over when the replica is ready",
        series=states("a", (30, "unreachable"), (90, "loading"), (60, "ready")) | states("b", (200, "ready")),
        expect=[
            fires("14m30s", "LLMColdStartSlow"),
            fires("15m30s", "LLMColdStartSlow", ',replica="a"'),
            fires("19m", "LLMColdStartSlow", ',replica="a"'),
            fires("21m30s", "LLMColdStartSlow"),
        ],
    ),
    Case(
        claim="nine minutes are not; one scrape in four that fails gives no more time",
        series=states("a", (54, "loading"), (100, "ready"))
        | states("b", *((3, "loading"), (1, "lost")) * 30)
        | states("c", *((3, "loading"), (1, "unreachable")) * 30),
        expect=[
            *(fires(f"{minute}m", "LLMColdStartSlow") for minute in (9, 10, 12)),
            fires("14m30s", "LLMColdStartSlow", ',replica="b"', ',replica="c"'),
        ],
    ),
]


def latency(replica: str, seconds: float, *, per_scrape: float = 1, count: int = 360, metric: str) -> dict[str, str]:
    """Write a histogram's sum and count: requests of the same length."""
    target = f'{{{MODEL},replica="{replica}"}}'
    return {
        f"{metric}_count{target}": samples((count, per_scrape)),
        f"{metric}_sum{target}": samples((count, per_scrape * seconds)),
    }


def itl(replica: str, seconds: float, per_scrape: float = 1) -> dict[str, str]:
    return latency(replica, seconds, per_scrape=per_scrape, metric="llm_time_per_output_token_seconds")


def ttft(replica: str, seconds: float) -> dict[str, str]:
    return latency(replica, seconds, metric="llm_time_to_first_token_seconds")


def mean(at: str, name: str, **seconds: float) -> Expect:
    return Expect(
        at=at,
        expr=f"round({name}, 1e-6)",
        samples={f'{{{MODEL},replica="{replica}"}}': value for replica, value in seconds.items()},
    )


OUTLIERS = [
    Case(
        claim="three times as slow between tokens as the median, or to the first token",
        series=itl("a", 0.06) | itl("b", 0.02) | itl("c", 0.021) | ttft("a", 0.2) | ttft("b", 0.9) | ttft("c", 0.3),
        expect=[
            fires("8m", "LLMReplicaOutlier"),
            fires("20m", "LLMReplicaOutlier", ',replica="a"', ',replica="b"'),
            mean("20m", "replica:llm_itl_seconds:mean30m", a=0.06, b=0.02, c=0.021),
            mean("20m", "replica:llm_ttft_seconds:mean30m", a=0.2, b=0.9, c=0.3),
        ],
    ),
    Case(
        claim="less than twice as slow is no outlier",
        series=itl("a", 0.039) | itl("b", 0.02) | itl("c", 0.021),
        expect=[fires("40m", "LLMReplicaOutlier")],
    ),
    Case(
        claim="of two replicas nobody knows which one is odd",
        series=itl("a", 0.2) | itl("b", 0.02),
        expect=[fires("40m", "LLMReplicaOutlier")],
    ),
    Case(
        claim="a few requests may be odd ones",
        series=itl("a", 0.2, per_scrape=0.1) | itl("b", 0.02) | itl("c", 0.02) | itl("d", 0.02),
        expect=[fires("40m", "LLMReplicaOutlier")],
    ),
    Case(
        claim="without requests nobody is slow, and numbers that are none say nothing",
        series=itl("a", 0, 0) | itl("b", 0, 0) | itl("c", 0, 0) | ttft("a", float("nan")),
        expect=[fires("40m", "LLMReplicaOutlier")],
    ),
]


def version(replica: str, text: str, values: str) -> dict[str, str]:
    return {f'llm_replica_info{{{MODEL},replica="{replica}",engine="vllm",version="{text}"}}': values}


VERSIONS = [
    Case(
        claim="a rollout that stops half-way is told after six hours; one that ends within them is not",
        series=version("a", "0.32.0", "1x480")
        | version("b", "0.32.0", "1x60 stale")
        | version("b", "0.33.0", "_x61 1x420"),
        expect=[
            fires("6h", "LLMVersionSkew"),
            fires("7h10m", "LLMVersionSkew", ',engine="vllm"'),
        ],
        every="1m",
    ),
    Case(
        claim="versions that are not known, of another engine, or of a replica that was scraped now and then",
        series=version("a", "0.32.0", "1 1 1 _ " * 120)
        | version("b", "", "1x480")
        | {f'llm_replica_info{{{MODEL},replica="c",engine="llama-server",version="b1"}}': "1x480"},
        expect=[fires("7h30m", "LLMVersionSkew")],
        every="1m",
    ),
]


def test_a_replica_that_comes_and_goes_is_told(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, RULES, FLAPPING)


def test_a_pool_without_its_spare_is_told(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, RULES, SPARE)


def test_a_fleet_without_spares_has_none_to_lose() -> None:
    assert not alert("LLMNoSpareReplica").needed(replace(FLEET, spare_replicas=0))
    assert alert("LLMNoSpareReplica").needed(FLEET)


def test_a_replica_that_loads_too_long_is_told(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, RULES, COLD)


def test_a_large_model_may_load_longer(promtools: Tool, tmp_path: Path) -> None:
    table = ThresholdTable(models={"org/a&b": Thresholds(cold_start=timedelta(minutes=20))})
    case = Case(
        claim="twenty minutes instead of ten",
        series=states("a", (180, "loading")),
        expect=[fires("19m", "LLMColdStartSlow"), fires("20m30s", "LLMColdStartSlow", ',replica="a"')],
    )
    run(promtools, tmp_path, replace(RULES, fleet=replace(FLEET, thresholds=table)), [case])


def test_a_replica_slower_than_its_peers_is_told(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, replace(RULES, evaluate="1m"), OUTLIERS)


def test_a_rollout_that_has_stopped_is_told(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, replace(RULES, evaluate="1m"), VERSIONS)
