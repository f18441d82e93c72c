"""LLMModelDown, LLMReplicaDown and Watchdog, in promtool."""

from datetime import timedelta
from pathlib import Path

from exporter.catalogue import STATE
from exporter.fleet import Fleet, ModelPolicy, Replica
from exporter.thresholds import Thresholds, ThresholdTable
from running.tools import Tool
from tests.prometheus.promtool import Case, Expect, Rules, run

STAGES = ("load", "alerts-replicas", "alerts-watchdog")
FLEET = Fleet(
    replicas=(Replica(name="a", url="http://127.0.0.1:8000"),),
    models={"batch-70b": ModelPolicy(min_ready=0), "qwen3-8b": ModelPolicy(min_ready=1)},
    thresholds=ThresholdTable(models={"large": Thresholds(cold_start=timedelta(minutes=20))}),
)


NO_SAMPLE = {"lost": "stale", "not yet": "_"}


def states(
    replica: str, *phases: tuple[int, str], model: str = "org/a&b", engine: str = "", instance: str = ""
) -> dict[str, str]:
    """Write llm_replica_state of one replica: each phase is a number of scrapes and the state they found.

    `lost` is a scrape that failed: Prometheus marks every series of the target as stale.
    """
    labels = {"model": model, "replica": replica, "zone": "a", "engine": engine, "instance": instance}
    target = ",".join(f'{k}="{v}"' for k, v in labels.items() if v)
    seen = [state for count, state in phases for _ in range(count)]
    return {
        f'llm_replica_state{{{target},state="{state}"}}': " ".join(
            NO_SAMPLE.get(each, f"{int(each == state)}") for each in seen
        )
        for state in STATE.values
    }


def _alert(at: str, alertname: str, *labels: str) -> Expect:
    expr = f'ALERTS{{alertname="{alertname}",alertstate="firing"}}'
    start = f'ALERTS{{alertname="{alertname}",alertstate="firing"'
    return Expect(at=at, expr=expr, samples={f"{start},{each}}}": 1 for each in labels})


def model_down(at: str, *models: str) -> Expect:
    return _alert(at, "LLMModelDown", *(f'severity="page",model="{model}"' for model in models))


def replica_down(at: str, *replicas: str) -> Expect:
    return _alert(at, "LLMReplicaDown", *(f'severity="ticket",model="org/a&b",replica="{r}"' for r in replicas))


MODEL_CASES = [
    Case(
        claim="a model is down 30 s after its last replica, and pages 10 s later; it is over with the first ready one",
        series=states("a", (60, "ready"), (60, "unreachable"), (60, "ready"))
        | states("b", (30, "ready"), (90, "broken"), (60, "unreachable")),
        expect=[model_down("10m20s"), model_down("10m45s", "org/a&b"), model_down("20m5s")],
    ),
    *(
        Case(
            claim=f"a model whose replicas are {state} serves nobody",
            series=states("a", (60, "ready"), (60, state)),
            expect=[model_down("9m50s"), model_down("11m", "org/a&b")],
        )
        for state in ("loading", "draining", "stuck", "denied", "disabled", "unreachable", "broken")
    ),
    Case(
        claim="a planned sleep pages nobody, and neither does waking up within two minutes",
        series=states("a", (60, "ready"), (60, "sleeping"), (9, "loading"), (60, "ready"))
        | states("b", (60, "ready"), (60, "sleeping"), (9, "unreachable"), (60, "ready")),
        expect=[model_down(at) for at in ("10m20s", "10m45s", "12m", "20m", "20m45s", "21m25s", "23m")],
    ),
    Case(
        claim="a model that does not wake up is down",
        series=states("a", (60, "sleeping"), (60, "unreachable")),
        expect=[model_down("11m50s"), model_down("12m30s", "org/a&b")],
    ),
    Case(
        claim="one replica sleeps and the other one is dead: nobody serves",
        series=states("a", (60, "ready"), (60, "sleeping")) | states("b", (120, "unreachable")),
        expect=[model_down("10m20s"), model_down("10m45s", "org/a&b")],
    ),
    Case(
        claim="a model that may scale to zero may have no replica that is ready",
        series=states("a", (120, "unreachable"), model="batch-70b"),
        expect=[model_down("15m")],
    ),
    Case(
        claim="a replica whose model nobody knows yet is no model",
        series=states("a", (120, "unreachable"), model=""),
        expect=[model_down("15m")],
    ),
    Case(
        claim="one failed scrape in four neither pages for a model that is ready nor hides one that is not",
        series=states("a", *((3, "ready"), (1, "unreachable")) * 30)
        | states("b", (10, "ready"), *((3, "unreachable"), (1, "lost")) * 30, model="down")
        | states("c", *((3, "ready"), (1, "lost")) * 30, model="up"),
        expect=[
            *(model_down(at) for at in ("1m", "1m45s")),
            *(model_down(f"{second}s", "down") for second in range(150, 1200, 5)),
        ],
    ),
    Case(
        claim="two scrapes in a row may fail",
        series=states("a", *((6, "ready"), (2, "unreachable")) * 15),
        expect=[model_down(f"{second}s") for second in range(60, 600, 5)],
    ),
    Case(
        claim="a model that is ready in one scrape of three pages within four minutes, until it stays ready",
        series=states("a", (60, "ready"), *((1, "ready"), (2, "unreachable")) * 40, (60, "ready")),
        expect=[
            *(model_down(at) for at in ("10m", "11m", "12m", "13m")),
            *(model_down(f"{second}s", "org/a&b") for second in range(845, 1800, 5)),
            model_down("33m30s"),
        ],
    ),
    Case(
        claim="every other scrape that fails, replicas that take turns, and waking up now and then page nobody",
        series=states("a", *((1, "ready"), (1, "unreachable")) * 90)
        | states("b", *((6, "ready"), (12, "loading")) * 10, model="turns")
        | states("c", *((6, "loading"), (6, "ready"), (6, "loading")) * 10, model="turns")
        | states("d", *((12, "loading"), (6, "ready")) * 10, model="turns")
        | states("e", *((1, "ready"), (3, "sleeping")) * 45, model="naps"),
        expect=[model_down(f"{second}s") for second in range(60, 1800, 5)],
    ),
    Case(
        claim="an outage of three minutes is over when the model is ready again, though it was mostly down",
        series=states("a", (60, "ready"), (18, "unreachable"), (60, "ready")),
        expect=[model_down("10m50s", "org/a&b"), *(model_down(f"{second}s") for second in range(785, 1200, 5))],
    ),
    Case(
        claim="replicas that are taken out of the fleet are not missed",
        series=states("a", (60, "ready"), (1, "lost")),
        expect=[model_down(at) for at in ("10m20s", "10m45s", "12m", "14m")],
    ),
    Case(
        claim="states that are no numbers say nothing",
        series={name: " ".join(["NaN"] * 60) for name in states("a", (1, "ready"))},
        expect=[model_down("5m")],
    ),
]

START_CASES = [
    *(
        Case(
            claim=f"a model that starts with its monitoring, {state} for nine minutes, pages nobody",
            series=states("a", (54, state), (60, "ready")) | states("b", (20, state), (34, "lost"), (60, "ready")),
            expect=[model_down(f"{second}s") for second in range(10, 1080, 10)],
        )
        for state in ("loading", "unreachable")
    ),
    Case(
        claim="a model that is not ready when it could be pages, and a failed scrape in four hides none",
        series=states("a", (180, "unreachable"))
        | states("b", *((3, "unreachable"), (1, "lost")) * 45, model="gaps")
        | states("c", (180, "loading"), model="large"),
        expect=[
            model_down("9m55s"),
            model_down("10m15s", "org/a&b"),
            *(model_down(f"{second}s", "org/a&b", "gaps") for second in range(835, 1190, 5)),
            model_down("20m45s", "org/a&b", "gaps", "large"),
        ],
    ),
    Case(
        claim="a model that starts, serves and dies within its first minutes pages at once, until it is back",
        series=states("a", (12, "loading"), (12, "ready"), (80, "unreachable"), (20, "ready")),
        expect=[
            *(model_down(f"{second}s") for second in range(5, 255, 5)),
            *(model_down(f"{second}s", "org/a&b") for second in range(285, 1035, 5)),
            model_down("17m25s"),
        ],
    ),
    Case(
        claim="after a gap of a minute three scrapes tell; after one of ten minutes the model may be starting",
        series=states("a", (60, "ready"), (6, "lost"), (60, "unreachable"))
        | states("b", (60, "ready"), (60, "lost"), (50, "loading"), (30, "ready"), model="long")
        | states("c", (60, "ready"), (6, "lost"), (2, "unreachable"), (60, "ready"), model="short"),
        expect=[
            *(model_down(f"{second}s") for second in range(600, 685, 5)),
            *(model_down(f"{second}s", "org/a&b") for second in range(700, 1250, 5)),
            *(model_down(f"{second}s") for second in range(1300, 1990, 5)),
        ],
    ),
    Case(
        claim="a gap while it pages does not end the page",
        series=states("a", (60, "ready"), (60, "unreachable"), (12, "lost"), (60, "unreachable")),
        expect=[
            model_down("19m", "org/a&b"),
            *(model_down(f"{second}s", "org/a&b") for second in range(1360, 1900, 5)),
        ],
    ),
]

REPLICA_CASES = [
    Case(
        claim="a replica that fails for five minutes brings a ticket",
        series=states("a", (60, "ready"), (90, "unreachable"), (60, "ready")) | states("b", (240, "ready")),
        expect=[replica_down("17m"), replica_down("18m", "a"), replica_down("24m", "a"), replica_down("29m")],
    ),
    Case(
        claim="a restart of three minutes brings none",
        series=states("a", (60, "ready"), (18, "unreachable"), (100, "ready")),
        expect=[replica_down(f"{minute}m") for minute in range(10, 28)],
    ),
    Case(
        claim="a replica that crashes and starts again is found although it is ready now and then, or not scraped",
        series=states("a", *((2, "unreachable"), (1, "ready")) * 40) | states("b", *((3, "broken"), (1, "lost")) * 30),
        expect=[replica_down("15m", "a", "b"), replica_down("19m", "a", "b")],
    ),
    Case(
        claim="one failed scrape in four brings none",
        series=states("a", *((3, "ready"), (1, "unreachable")) * 60) | states("b", *((3, "ready"), (1, "lost")) * 60),
        expect=[replica_down(f"{minute}m") for minute in (6, 12, 20, 39)],
    ),
    *(
        Case(
            claim=f"a replica that is {state} is not down",
            series=states("a", (240, state)),
            expect=[replica_down(f"{minute}m") for minute in (6, 12, 20, 39)],
        )
        for state in ("ready", "loading", "sleeping", "draining")
    ),
    Case(
        claim="a replica that is taken out of the fleet is not missed",
        series=states("a", (60, "ready"), (120, "unreachable"), (1, "lost"))
        | states("b", (60, "ready"), (30, "unreachable"), (1, "lost")),
        expect=[
            *(replica_down(f"{minute}m", "a") for minute in (18, 20, 29)),
            *(replica_down(at) for at in ("31m", "36m")),
        ],
    ),
    Case(
        claim="a replica that starts within a minute, and only then tells its engine, was never down",
        series=states("a", (6, "unreachable"), (1, "lost"))
        | states("a", (7, "not yet"), (90, "ready"), engine="vllm")
        | states("b", (6, "unreachable"), (1, "lost"), model="")
        | states("b", (7, "not yet"), (90, "ready"), engine="vllm"),
        expect=[replica_down(f"{second}s") for second in range(60, 900, 20)],
    ),
    Case(
        claim="a replica that is down goes on being down at another address",
        series=states("a", (60, "ready"), (24, "unreachable"), (1, "lost"), instance="h:1")
        | states("a", (85, "not yet"), (60, "unreachable"), instance="h:2"),
        expect=[replica_down("12m"), replica_down("18m", "a"), replica_down("22m", "a")],
    ),
    Case(
        claim="a model that may be off has no replica that is down; that of a model that may not be has",
        series=states("a", (240, "unreachable"), model="batch-70b")
        | states("b", (120, "broken"), (120, "disabled"), model="batch-70b")
        | states("c", (240, "unreachable")),
        expect=[replica_down(at, "c") for at in ("15m", "39m")],
    ),
    Case(
        claim="a replica that never told its model is down as well",
        series=states("a", (240, "denied"), model=""),
        expect=[_alert("15m", "LLMReplicaDown", 'severity="ticket",replica="a"')],
    ),
]


def test_a_model_is_down_when_none_of_its_replicas_was_ready_lately(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, Rules(fleet=FLEET, stages=STAGES, evaluate="5s"), MODEL_CASES)


def test_a_model_is_not_missed_before_it_could_have_been_ready(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, Rules(fleet=FLEET, stages=STAGES), START_CASES)


def test_a_replica_is_down_when_it_failed_most_of_the_time(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, Rules(fleet=FLEET, stages=STAGES), REPLICA_CASES)


def test_the_watchdog_always_fires(promtools: Tool, tmp_path: Path) -> None:
    always = Case(
        claim="without any series at all",
        series={},
        expect=[_alert(at, "Watchdog", 'severity="heartbeat"') for at in ("0s", "1m", "1h")],
    )
    run(promtools, tmp_path, Rules(fleet=FLEET, stages=STAGES, evaluate="1m"), [always])
