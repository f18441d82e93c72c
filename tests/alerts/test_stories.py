"""Every alert lives through every situation that can occur to it, in promtool, with the recording rules it reads."""

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pytest

import tests.alerts.stories
from alerts.catalogue import ALERTS
from alerts.model import Severity
from running.tools import Tool
from tests.alerts.stories.rules import rules_of
from tests.alerts.stories.situations import Situation, Story, cases, variants
from tests.prometheus.promtool import judge

Told = tuple[str, Severity]


def _stories() -> Mapping[Told, list[Story]]:
    """Find the stories of each alert and severity."""
    names = sorted(module.name for module in pkgutil.iter_modules(tests.alerts.stories.__path__))
    modules = (import_module(f"tests.alerts.stories.{name}") for name in names)
    found = [story for module in modules for story in getattr(module, "STORIES", ())]
    alerts = dict.fromkeys((story.alert, story.severity) for story in found)
    return {key: [story for story in found if (story.alert, story.severity) == key] for key in alerts}


STORIES = _stories()
RULES = {(alert.name, severity) for alert in ALERTS for severity in alert.severities}


def test_every_alert_has_stories() -> None:
    assert set(STORIES) == RULES


@pytest.mark.parametrize("told", sorted(STORIES, key=str), ids=lambda told: f"{told[0]}-{told[1].value}")
def test_every_situation_is_there_or_cannot_occur(told: Told) -> None:
    stories = STORIES[told]
    there = {variant.situation for story in stories for variant in variants(story)}
    impossible = set.intersection(*(set(story.cannot) for story in stories))
    assert there | impossible == set(Situation)
    assert not there & impossible
    reasons = [reason for story in stories for reason in story.cannot.values()]
    assert all(len(reason) > len("no") and "\n" not in reason for reason in reasons)


@pytest.mark.parametrize("told", sorted(STORIES, key=str), ids=lambda told: f"{told[0]}-{told[1].value}")
def test_it_fires_at_the_right_moment_and_stays_quiet_otherwise(promtools: Tool, tmp_path: Path, told: Told) -> None:
    for story in STORIES[told]:
        all_of_them = cases(story, variants(story), story.alert)
        result = judge(promtools, tmp_path, rules_of(story), f"{story.evaluate}s", all_of_them)
        assert result.returncode == 0, f"{promtools}\n{result.stdout[-6000:]}{result.stderr[-6000:]}"
