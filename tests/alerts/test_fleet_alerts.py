"""LLMFleetShrunk, and LLMMonitoringBlind where nothing is left to scrape, in promtool."""

from pathlib import Path

from exporter.fleet import Fleet, ModelPolicy, Replica
from running.tools import Tool
from tests.alerts.test_replica_alerts import states
from tests.prometheus.promtool import Case, Expect, Rules, run

FLEET = Fleet(replicas=(Replica(name="a", url="http://127.0.0.1:8000"),), models={"batch": ModelPolicy(min_ready=0)})
EXPORTER = 'up{job="exporter",instance="exporter:9801"}'
KNOWN = "llm_fleet_replicas"
SPARE = "llm_spare_replicas"


def watched(replica: str, *phases: tuple[int, str], model: str = "m") -> dict[str, str]:
    """Write the states of a replica and `up` of its target; `lost` ends the one, and the other after it has failed."""
    scraped = " ".join("stale" if state == "lost" else f"1x{count - 1}" for count, state in phases)
    return {
        **states(replica, *phases, model=model),
        f'up{{job="replicas",replica="{replica}",instance="{model}"}}': scraped.replace("stale", "0 0 0 stale"),
    }


def blind(*moments: str, yes: bool = True) -> list[Expect]:
    series = 'ALERTS{alertname="LLMMonitoringBlind",alertstate="firing"'
    samples = {f'{series},severity="page"}}': 1.0} if yes else {}
    return [Expect(at=at, expr=f"{series}}}", samples=samples) for at in moments]


def shrunk(*moments: str, of: tuple[str, ...] = ()) -> list[Expect]:
    """Expect tickets about models; an empty name is the fleet."""
    series = 'ALERTS{alertname="LLMFleetShrunk",alertstate="firing"'
    samples = {f'{series},severity="ticket"{model and f",model={model!r}"}}}': 1.0 for model in of}
    return [Expect(at=at, expr=f"{series}}}", samples=samples) for at in moments]


NOBODY_LEFT = [
    Case(
        claim="a fleet that lost all its files pages within two minutes, until they are back",
        series={EXPORTER: "1x300", SPARE: "1x300"}
        | watched("a", (60, "ready"), (1, "lost"))
        | watched("b", (61, "unreachable"), (1, "lost"))
        | {name: f"{'_ ' * 200}{values}" for name, values in watched("c", (60, "ready")).items()},
        expect=[
            *blind(*(f"{second}s" for second in range(600, 690, 10)), yes=False),
            *blind(*(f"{second}s" for second in range(730, 2000, 10))),
            *blind("33m40s", "40m", yes=False),
        ],
    ),
    Case(
        claim="one model of two leaves the fleet",
        series={EXPORTER: "1x300", SPARE: "1x300"}
        | watched("a", (60, "ready"), (1, "lost"))
        | watched("b", (200, "ready"), model="n"),
        expect=blind("12m", "20m", yes=False),
    ),
    Case(
        claim="the last ones leave after a drain, never served, or belong to a model that may be off",
        series={EXPORTER: "1x300", SPARE: "1x300"}
        | watched("a", (60, "ready"), (30, "draining"), (1, "lost"))
        | watched("b", (50, "ready"), (40, "draining"), (1, "lost"))
        | watched("c", (80, "ready"), (1, "lost"), model="batch")
        | watched("d", (80, "unreachable"), (1, "lost"), model="n"),
        expect=blind(*(f"{minute}m" for minute in range(14, 40, 2)), yes=False),
    ),
    Case(
        claim="Prometheus starts again after ten minutes and finds the exporter half a minute before the replicas",
        series={EXPORTER: "1x60 _x59 1x60", SPARE: "1x60 _x59 1x60"}
        | {name: f"{values} {'_ ' * 63}{values}" for name, values in watched("a", (60, "ready")).items()},
        expect=blind(*(f"{second}s" for second in range(600, 1800, 10)), yes=False),
    ),
    Case(
        claim="Prometheus starts again and finds no targets, though the exporter answers",
        series={EXPORTER: "1x60 _x59 1x60", SPARE: "1x60 _x59 1x60"} | watched("a", (60, "ready")),
        expect=[*blind("20m30s", yes=False), *blind("21m30s", "25m")],
    ),
]

DAY = 1440
SHRUNK = [
    Case(
        claim="a model whose replicas were ready has left: told after ten minutes, for a day",
        series={EXPORTER: f"1x{2 * DAY}", KNOWN: f"1x{2 * DAY}"}
        | watched("a", (60, "ready"), (1, "lost"))
        | watched("b", (60, "ready"), (1, "lost"))
        | watched("c", (2 * DAY, "ready"), model="n"),
        expect=[*shrunk("68m"), *shrunk("72m", "24h30m", of=("m",)), *shrunk("25h5m")],
        every="1m",
    ),
    Case(
        claim="it is over when the model is back",
        series={EXPORTER: "1x200", KNOWN: "1x200"}
        | watched("a", (60, "ready"), (40, "lost"), (60, "ready"))
        | watched("c", (200, "ready"), model="n"),
        expect=[*shrunk("80m", of=("m",)), *shrunk("105m", "2h")],
        every="1m",
    ),
    Case(
        claim="drained ones, one that never served, one that may be off, and a change of labels are not missed",
        series={EXPORTER: "1x200", KNOWN: "1x200"}
        | watched("a", (60, "ready"), (5, "draining"), (1, "lost"))
        | watched("b", (61, "ready"), (6, "draining"), (1, "lost"))
        | watched("c", (60, "ready"), (1, "lost"), model="batch")
        | watched("d", (60, "unreachable"), (1, "lost"), model="never")
        | watched("e", (60, "ready"), (1, "lost"), model="new engine")
        | {
            name.replace('zone="a"', 'zone="b"'): f"{'_ ' * 61}{values}"
            for name, values in watched("e", (139, "ready"), model="new engine").items()
        }
        | watched("f", *((200, "ready"),), model="n")
        | watched("g", *((200, "ready"),), model="n"),
        expect=shrunk(*(f"{minute}m" for minute in range(60, 200, 10))),
        every="1m",
    ),
    Case(
        claim="most replicas have left and no model lost all of them: it is the fleet that shrank",
        series={EXPORTER: "1x300", KNOWN: "2x300"}
        | watched("a", (200, "ready"))
        | watched("b", (200, "ready"), model="n")
        | {name: values for replica in "cde" for name, values in watched(replica, (60, "ready"), (1, "lost")).items()},
        expect=[*shrunk("68m"), *shrunk("73m", "3h", of=("",))],
        every="1m",
    ),
    Case(
        claim="half of them, or more of which some were drained, or nothing at all for a moment, is no such thing",
        series={EXPORTER: "1x300", KNOWN: "2x300"}
        | watched("a", (100, "ready"), (5, "lost"), (100, "ready"))
        | watched("b", (100, "ready"), (5, "lost"), (100, "ready"), model="n")
        | {name: values for replica in "cd" for name, values in watched(replica, (60, "ready"), (1, "lost")).items()}
        | watched("e", (60, "ready"), (10, "draining"), (1, "lost")),
        expect=shrunk(*(f"{minute}m" for minute in range(60, 200, 5))),
        every="1m",
    ),
    Case(
        claim="a fleet without any replica is told for as long as it is empty, once it is forgotten what was there",
        series={EXPORTER: f"1x{3 * DAY}"} | watched("a", (60, "ready"), (1, "lost")),
        expect=[*shrunk("72m", "24h", of=("m",)), *shrunk("26h", "60h", of=("",))],
        every="1m",
    ),
    Case(
        claim="a fleet that was never filled is told, an exporter that does not answer is not an empty fleet",
        series={EXPORTER: "1x60 0x60"},
        expect=[*shrunk("8m"), *shrunk("15m", "59m", of=("",)), *shrunk("75m")],
        every="1m",
    ),
]


def test_a_fleet_with_nobody_left_to_watch_pages(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, Rules(fleet=FLEET, stages=("load", "alerts-fleet", "alerts-monitoring")), NOBODY_LEFT)


def test_what_is_not_watched_any_more_brings_a_ticket(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, Rules(fleet=FLEET, stages=("load", "alerts-fleet"), evaluate="1m"), SHRUNK)
