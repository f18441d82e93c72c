"""Stories of `alerts/groups/budget.py`.

One function builds the four alerts, so the floors and all windows are told of one of them alone.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from alerts.model import Severity
from exporter.fleet import Fleet
from tests.alerts.stories.lines import Lines
from tests.alerts.stories.requests import KEPT_BOUNDS, asked, new_bound, old_bound
from tests.alerts.stories.situations import Situation, Story, Told, Variant
from tests.alerts.test_budget_alerts import fleet

NAMES = {
    "ttft": "LLMTimeToFirstTokenBudgetBurn",
    "itl": "LLMInterTokenLatencyBudgetBurn",
    "availability": "LLMAvailabilityBudgetBurn",
    "goodput": "LLMGoodputBudgetBurn",
}
LOOSE, STRICT = fleet("0.95"), fleet("0.995")
AS_OF_A_DAY = {f"20 -> {x}": "the floors of a day" for x in (16, 24)} | {
    f"5 -> {x}": "the floors of a day" for x in (4, 6)
}
ELSEWHERE = {"": "built by the function whose limits LLMTimeToFirstTokenBudgetBurn pins"}


def burns(  # noqa: PLR0913 - what differs between the stories of this file
    slo: str,
    windows: tuple[str, str],
    trouble: Lines,
    below: Mapping[str, Lines],
    fires: int,
    *,
    middle: int,
    objectives: Fleet = LOOSE,
    every: int = 60,
    evaluate: int = 210,
    **others: Any,  # noqa: ANN401 - fields of a story
) -> Story:
    long, short = windows
    cannot = {Situation.REBUCKETED: "outcomes have no buckets"} if slo == "availability" else {}
    return Story(
        alert=NAMES[slo],
        severity=Severity.PAGE if long in {"1h", "6h"} else Severity.TICKET,
        labels=f'model="@",slo="{slo}"',
        trouble=trouble,
        below=below,
        fires=fires,
        middle=middle,
        stages=(
            *("indicators-1h", "burn-usual"),
            *(f"{of}-{window}" for of in ("indicators", "burn") for window in (long, short)),
            "alerts-budget",
        ),
        fleet=objectives,
        every=every,
        evaluate=evaluate,
        kept_bounds=KEPT_BOUNDS,
        cannot=cannot,
        **others,
    )


def new_threshold(slo: str, well: Lines, at: int, end: int) -> tuple[Variant, ...]:
    if slo == "availability":
        return ()
    told = (Told(at=end, fires=False, since=0),)
    changes = {"a new threshold": new_bound(well, at), "a threshold that rules still go by": old_bound(well, at)}
    return tuple(
        Variant(situation=Situation.REBUCKETED, of=of, lines=lines, told=told) for of, lines in changes.items()
    )


def pages(slo: str) -> Story:
    """Spend nearly all of the share at once, and the rest slowly."""
    well = asked(slo, (300, 100, 1))
    return burns(
        slo,
        ("1h", "5m"),
        asked(slo, (180, 100, 1), (40, 100, 100), (1, 100, 50), (79, 100, 10)),
        {"the tail is no trouble": asked(slo, (180, 100, 1), (40, 100, 100), (1, 100, 50), (79, 100, 8.2))},
        13650,
        apart=210,
        middle=200,
        over=1500,
        clear=asked(slo, (180, 100, 1), (120, 100, 100)),
        well=well,
        also=new_threshold(slo, well, 200, 17900),
        same={} if slo == "ttft" else ELSEWHERE,
    )


def spent(slo: str, burst: int, tail: float) -> Lines:
    return asked(slo, (200, 100, 1), (burst, 100, 100), (342, 100, tail))


def tickets(slo: str) -> Story:
    well = asked(slo, (640, 100, 1))
    return burns(
        slo,
        ("1d", "2h"),
        spent(slo, 98, 4.2),
        {"the tail is no trouble": spent(slo, 98, 3.3)},
        51240,
        middle=230,
        over=9000,
        late=12000,
        clear=asked(slo, (200, 100, 1), (440, 100, 50)),
        well=well,
        also=new_threshold(slo, well, 230, 76000),
        same={} if slo == "ttft" else ELSEWHERE,
        **SLOWLY,
    )


def limits(
    windows: tuple[str, str],
    trouble: Lines,
    below: Lines,
    fires: int,
    **others: Any,  # noqa: ANN401 - fields of a story
) -> Story:
    """Tell only when it fires and when not: the rest is told elsewhere."""
    told = (Situation.FIRES, Situation.BELOW)
    cannot = {each: "told where the share of the budget is spent" for each in Situation if each not in told}
    story = burns("ttft", windows, trouble, {"a little less": below}, fires, middle=0, over=0, **others)
    return replace(story, cannot=cannot)


SLOWLY: dict[str, Any] = {"every": 120, "evaluate": 280}

STORIES = (
    *map(pages, NAMES),
    limits(
        ("6h", "30m"),
        asked("ttft", (60, 100, 1), (170, 100, 59.5), (100, 100, 8.4)),
        asked("ttft", (60, 100, 1), (170, 100, 59.5), (100, 100, 6.6)),
        16590,
        apart=630,
    ),
    *(
        limits(
            windows,
            asked("ttft", (count, few / of, few / of)),
            asked("ttft", (count, few * 18 / 22 / of, few * 18 / 22 / of)),
            fires,
            **pace,
        )
        for windows, few, of, count, fires, pace in (
            (("1h", "5m"), 22, 60, 90, 3570, {}),
            (("6h", "30m"), 22, 360, 400, 19950, {}),
            (("1d", "2h"), 22, 720, 740, 78680, SLOWLY),
        )
    ),
    *(
        limits(
            windows,
            asked("ttft", (count, bad / share / of, bad / of)),
            asked("ttft", (count, bad / share / of * 0.82, bad / of * 0.82)),
            fires,
            objectives=STRICT,
            **pace,
        )
        for windows, bad, share, of, count, fires, pace in (
            (("1h", "5m"), 5.5, 0.073, 60, 90, 3570, {}),
            (("6h", "30m"), 5.5, 0.0295, 360, 400, 21630, {}),
            (("1d", "2h"), 5.5, 0.015, 720, 740, 84000, SLOWLY),
        )
    ),
    *map(tickets, NAMES),
    limits(("3d", "6h"), spent("ttft", 96, 2.8), spent("ttft", 96, 2.2), 63840, same=AS_OF_A_DAY, **SLOWLY),
)
