"""Stories of `alerts/groups/collapse.py`."""

from collections.abc import Iterator

from alerts.model import Severity
from tests.alerts.stories.requests import COUNTED, KEPT_BOUNDS, asked, new_bound, old_bound, young
from tests.alerts.stories.situations import Situation, Story, Told, Variant

WELL, ILL, MIDDLE = 60, 70, 66


def collapsed(slo: str, missed: float, fires: int, severity: Severity) -> Story:
    """Let so many of 100 requests miss an objective after ten minutes."""
    well = asked(slo, (WELL + ILL, 100, 1))
    told = (Told(at=(WELL + ILL) * 10, fires=False, since=0),)
    changes = {
        "a new threshold": new_bound(well, WELL + 2),
        "a new threshold of a young replica": new_bound(young(well, WELL), WELL + 9),
        "a threshold that rules still go by": old_bound(well, WELL + 2),
    }
    rebucketed = tuple(
        Variant(situation=Situation.REBUCKETED, of=of, lines=lines, told=told) for of, lines in changes.items()
    )
    return Story(
        alert="LLMGoodputCollapse",
        severity=severity,
        labels=f'model="@",slo="{slo}"',
        trouble=asked(slo, (WELL, 100, 1), (ILL, 100, missed)),
        below={"a few more are good": asked(slo, (WELL + ILL, 100, missed - 12))},
        clear=asked(slo, (WELL, 100, 1), (ILL, 100, 100)),
        well=well,
        fires=fires,
        stages=("indicators-1h", "now", "alerts-collapse"),
        middle=MIDDLE,
        over=460 if severity is Severity.PAGE else 2400,
        evaluate=7,
        kept_bounds=KEPT_BOUNDS,
        also=() if slo == "availability" else rebucketed,
        cannot={Situation.REBUCKETED: "outcomes have no buckets"} if slo == "availability" else {},
    )


def stories() -> Iterator[Story]:
    for severity in (Severity.PAGE, Severity.NOTE):
        for slo, missed in zip(COUNTED, (58, 58, 56), strict=True):
            yield collapsed(slo, missed, 735, severity)


STORIES = tuple(stories())
