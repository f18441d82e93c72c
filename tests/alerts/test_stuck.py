"""LLMReplicaStuck, in promtool: busy without a token pages; slow, asleep, loading or restarted does not."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from exporter.catalogue import STATE
from exporter.fleet import Fleet, Replica
from exporter.thresholds import Thresholds, ThresholdTable
from running.tools import Tool
from tests.prometheus.promtool import Case, Expect, Rules, run, samples

FLEET = Fleet(replicas=(Replica(name="a", url="http://127.0.0.1:8000"),))
RULES = Rules(fleet=FLEET, stages=("alerts-stuck",))
MODEL = "org/a&b"

Phase = tuple[int, float | None, float, float]
"""Scrapes, tokens per scrape (None: it failed), requests running, requests waiting."""


def engine(
    *phases: Phase, name: str = "a", kind: str = "vllm", state: str = "ready", more: str = "", start: float = 0
) -> dict[str, str]:
    """Write what one rank of a replica shows."""
    target = f'model="{MODEL}",replica="{name}",engine="{kind}"'

    def gauge(values: list[float]) -> str:
        return " ".join(
            "stale" if phase[1] is None else f"{value:g}"
            for phase, value in zip(phases, values, strict=True)
            for _ in range(phase[0])
        )

    tokens = samples(*((count, tokens) for count, tokens, _, _ in phases), start=start).split(" ", 1)[1]
    return {
        f"llm_requests_running{{{target}{more}}}": gauge([phase[2] for phase in phases]),
        f"llm_requests_waiting{{{target}{more}}}": gauge([phase[3] for phase in phases]),
        f"llm_generation_tokens_total{{{target}{more}}}": tokens,
        **{
            f'llm_replica_state{{{target},state="{each}"}}': gauge([float(each == state)] * len(phases))
            for each in STATE.values
        },
    }


def pages(at: str, *replicas: str) -> Expect:
    series = 'ALERTS{alertname="LLMReplicaStuck",alertstate="firing"'
    return Expect(
        at=at,
        expr=f"{series}}}",
        samples={f'{series},severity="page",model="{MODEL}",replica="{each}"}}': 1 for each in replicas},
    )


def quiet(*minutes: int) -> list[Expect]:
    return [pages(f"{minute}m") for minute in minutes]


ALWAYS = range(1, 30)
CASES = [
    Case(
        claim="an engine that hangs pages between two and three minutes later, and resolves with its first token",
        series=engine((60, 500, 8, 0), (60, 0, 8, 3), (60, 500, 8, 0)),
        expect=[pages("11m50s"), pages("12m45s", "a"), pages("19m55s", "a"), pages("20m15s")],
    ),
    Case(
        claim="a wedged engine that runs nothing and lets requests wait is stuck as well",
        series=engine((60, 500, 8, 0), (60, 0, 0, 3)),
        expect=[pages("12m45s", "a")],
    ),
    Case(
        claim="an engine that is busy gives tokens, slowly or fast, and one that is idle gives none",
        series=engine((180, 1, 8, 200))
        | engine((180, 0, 0, 0), name="idle")
        | engine(*[(11, 0, 1, 0), (1, 1, 1, 0)] * 15, name="slow"),
        expect=quiet(*ALWAYS),
    ),
    Case(
        claim="one failed scrape in four hides nothing, and is no hang",
        series=engine((60, 500, 8, 0), *[(3, 0, 8, 0), (1, None, 8, 0)] * 20)
        | engine(*[(3, 500, 8, 0), (1, None, 8, 0)] * 35, name="well"),
        expect=[*quiet(5, 9), pages("13m", "a"), pages("20m", "a")],
    ),
    *(
        Case(
            claim=f"a replica that is {state} is not stuck",
            series=engine((60, 500, 8, 0), (120, 0, 8, 0), state=state),
            expect=quiet(*ALWAYS),
        )
        for state in ("sleeping", "loading", "draining", "unreachable")
    ),
    Case(
        claim="a restart that loses what it held is no hang: the counter starts again, and so does the clock",
        series=engine((60, 500, 8, 0), (6, None, 0, 0), (60, 500, 8, 0)),
        expect=quiet(*range(1, 21)),
    ),
    Case(
        claim="a replica that has just started has the time to compute its first prompt",
        series=engine((60, None, 0, 0), (7, 0, 1, 0), (60, 500, 1, 0)),
        expect=[pages(f"{second}s") for second in range(600, 700, 10)],
    ),
    Case(
        claim="one rank hangs while another goes on",
        series=engine((120, 500, 8, 0), more=',rank="0"') | engine((60, 500, 8, 0), (60, 0, 8, 0), more=',rank="1"'),
        expect=[*quiet(9, 11), pages("13m", "a")],
    ),
    Case(
        claim="an embedding model reads prompts and generates nothing",
        series=engine((120, 0, 8, 0))
        | {f'llm_prompt_tokens_total{{model="{MODEL}",replica="a",engine="vllm"}}': samples((120, 900))},
        expect=quiet(*range(1, 20)),
    ),
    Case(
        claim="an engine that books tokens when a request ends may be silent for ten minutes, and not for sixteen",
        series=engine(*[(60, 0, 4, 0), (1, 3000, 4, 0)] * 2, (120, 0, 4, 0), kind="llama-server"),
        expect=[*quiet(*range(1, 35)), pages("36m30s", "a")],
    ),
    Case(
        claim="a counter with six digits stands still at small rates, and jumps",
        series=engine(*[(29, 0, 4, 0), (1, 1000, 4, 0)] * 6, kind="llama-server", start=123_456_000),
        expect=quiet(*ALWAYS),
    ),
    Case(
        claim="a replica that is taken out is not missed",
        series=engine((60, 500, 8, 0), (20, 0, 8, 0), (1, None, 0, 0)),
        expect=[pages("13m15s", "a"), pages("17m")],
    ),
    Case(
        claim="a label that is new after an upgrade starts a series of its own, and the hang of the old one is over",
        series=engine((60, 500, 8, 0), (6, 0, 8, 0), (1, None, 0, 0))
        | {name: f"{'_ ' * 67}{text}" for name, text in engine((60, 500, 8, 0), more=',zone="b"').items()},
        expect=quiet(*range(1, 20)),
    ),
    Case(
        claim="numbers that are none say nothing",
        series=engine((120, float("nan"), float("nan"), float("nan"))),
        expect=quiet(*range(1, 20)),
    ),
]


def test_a_busy_replica_without_a_token_pages(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, RULES, CASES)


def test_a_model_that_takes_its_time_gets_it(promtools: Tool, tmp_path: Path) -> None:
    table = ThresholdTable(models={MODEL: Thresholds(stuck_after=timedelta(minutes=5))})
    case = Case(
        claim="five minutes instead of two",
        series=engine((60, 500, 8, 0), (120, 0, 8, 3)),
        expect=[*quiet(13, 14), pages("15m45s", "a")],
    )
    run(promtools, tmp_path, replace(RULES, fleet=replace(FLEET, thresholds=table)), [case])
