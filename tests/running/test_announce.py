"""What a person reads once the product is up: the commands and folders it names are those of this run."""

from pathlib import Path

from running.announce import table
from running.paths import ROOT, RUN
from running.services import EXPORTER


def test_the_usual_run_is_stopped_by_make() -> None:
    assert "`make down` elsewhere; logs are in .run/logs/" in table((EXPORTER,), 2, RUN)


def test_a_run_elsewhere_names_its_own_directory() -> None:
    shown = table((EXPORTER,), 2, Path("/srv/watch"))
    assert "`.venv/bin/python -m running down --run /srv/watch` elsewhere; logs are in /srv/watch/logs/" in shown
    assert str(ROOT) not in shown
