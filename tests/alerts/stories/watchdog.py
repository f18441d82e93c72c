"""The story of `alerts/groups/watchdog.py`."""

from alerts.model import Severity
from tests.alerts.stories.situations import Situation, Story

STORIES = (
    Story(
        alert="Watchdog",
        severity=Severity.HEARTBEAT,
        labels="",
        trouble={},
        below={},
        fires=0,
        stages=("alerts-watchdog",),
        middle=0,
        over=0,
        cannot={each: "it reads no series" for each in Situation if each is not Situation.FIRES},
    ),
)
