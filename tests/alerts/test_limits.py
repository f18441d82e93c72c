"""Every limit of every alert is pinned by a story: were it a fifth larger or smaller, some story would not hold."""

from pathlib import Path

import pytest

from running.tools import Tool
from tests.alerts.stories.rules import with_mutants
from tests.alerts.stories.situations import Situation, cases, variants
from tests.alerts.test_stories import STORIES, Told
from tests.prometheus.promtool import judge

PINNING = (Situation.FIRES, Situation.BELOW)


PINNED = [told for told in sorted(STORIES, key=str) if all("" not in story.same for story in STORIES[told])]


@pytest.mark.parametrize("told", PINNED, ids=lambda told: f"{told[0]}-{told[1].value}")
def test_every_limit_is_pinned_by_a_story(promtools: Tool, tmp_path: Path, told: Told) -> None:
    surviving: set[str] | None = None
    for story in STORIES[told]:
        groups, changes = with_mutants(story)
        told_apart = tuple(variant for variant in variants(story) if variant.situation in PINNING)
        asked = cases(story, told_apart, *changes)
        result = judge(promtools, tmp_path, groups, f"{story.evaluate}s", asked)
        said = result.stdout + result.stderr
        alive = {change for name, change in changes.items() if f'alertname=\\"{name}\\"' not in said}
        alive = {change for change in alive if not change.endswith(tuple(story.same))}
        surviving = alive if surviving is None else surviving & alive
    assert not surviving
