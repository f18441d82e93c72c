"""LLMReplicaDraining and LLMDrainStuck, in promtool."""

from pathlib import Path

from exporter.fleet import Fleet, Replica
from running.tools import Tool
from tests.prometheus.promtool import Case, Expect, Rules, run

RULES = Rules(fleet=Fleet(replicas=(Replica(name="a", url="http://127.0.0.1:8000"),)), stages=("alerts-drain",))
TARGET = 'model="m",replica="a"'


def drain(marked: str, end: str, running: str = "3x120") -> dict[str, str]:
    """Write marker, its end (seconds since the test began) and running requests, scrape by scrape."""
    return {
        f"llm_replica_draining{{{TARGET}}}": marked,
        f"llm_replica_drain_expiry_timestamp_seconds{{{TARGET}}}": end,
        f"llm_requests_running{{{TARGET}}}": running,
    }


def fires(at: str, alertname: str, severity: str, *, fires: bool) -> Expect:
    series = f'ALERTS{{alertname="{alertname}",alertstate="firing"'
    return Expect(
        at=at,
        expr=f"{series}}}",
        samples={f'{series},severity="{severity}",{TARGET}}}': 1.0} if fires else {},
    )


def noted(at: str, *, yes: bool = True) -> Expect:
    return fires(at, "LLMReplicaDraining", "note", fires=yes)


def told(at: str, *, yes: bool = True) -> Expect:
    return fires(at, "LLMDrainStuck", "ticket", fires=yes)


CASES = [
    Case(
        claim="a drain that ends by itself while requests run is told",
        series=drain("0x10 1x59 0x60", "_x11 700x58 stale"),
        expect=[
            noted("1m", yes=False),
            noted("5m"),
            told("11m35s", yes=False),
            told("11m55s"),
            noted("13m", yes=False),
            told("18m"),
        ],
    ),
    Case(
        claim="a drain that empties the replica in time is not",
        series=drain("0x10 1x59 0x60", "_x11 700x58 stale", "3x40 0x80"),
        expect=[noted("5m"), told("11m55s", yes=False), told("15m", yes=False)],
    ),
    Case(
        claim="a marker that somebody removes ends the drain, and the replica serves again",
        series=drain("0x10 1x30 0x80", "_x11 700x30 stale"),
        expect=[noted("5m"), noted("9m", yes=False), *(told(f"{minute}m", yes=False) for minute in range(7, 20))],
    ),
    Case(
        claim="one failed scrape in four neither ends a drain nor hides that it did not end",
        series=drain("1 1 1 _ " * 17 + "0x60", "700 700 700 _ " * 17 + "700 700 700 stale", "3 3 3 _ " * 30),
        expect=[noted("3m"), noted("7m"), noted("11m"), told("11m35s", yes=False), told("12m")],
    ),
    Case(
        claim="no marker, no drain; numbers that are none say nothing",
        series=drain("0x60", "stale") | {'llm_replica_draining{model="m",replica="b"}': "NaN NaN NaN NaN NaN NaN NaN"},
        expect=[noted("1m", yes=False), told("5m", yes=False)],
    ),
]


def test_a_drain_is_known_and_told_when_it_does_not_end(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, RULES, CASES)
