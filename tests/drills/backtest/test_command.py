"""The command, as a shell sees it: a small run on a fixed seed, and the pictures."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from drills.backtest.incidents import Incident
from drills.backtest.plots import Scene, draw
from drills.backtest.rivals import TEXTBOOK
from running.paths import ROOT
from tests.drills.backtest.test_judge import START, fired

AT = np.arange(START - 600, START + 1200, 10)
SCENE = Scene(
    incident=Incident(model="m", shape="flapping", slo="ttft", start=START, duration=600, size=1, period=60),
    slo="ttft",
    objective=0.99,
    at=AT,
    good=np.where((AT >= START) & (AT < START + 600), 0.5, 1.0),
    left=np.linspace(1, 0.9, len(AT)),
    fired=(fired(100), fired(200, severity="ticket"), replace(fired(300), alert=TEXTBOOK)),
)
COLOURS = {"page": (0xC5, 0x30, 0x30), "ticket": (0xD6, 0x9E, 0x2E), "rival": (0xA0, 0xAE, 0xC0)}


def test_a_small_run_meets_every_figure(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "drills", "backtest", "--small", "--seed", "5", "--json", str(figures)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "every figure is met" in done.stdout
    systems = json.loads(figures.read_text(encoding="utf-8"))["systems"]
    ours, threshold = systems["Servewatch"], systems["threshold for 5 minutes"]
    assert ours["must_page"] > 0
    assert ours["late_or_never"] == 0
    assert threshold["late_or_never"] > 0


def test_help_says_how_long_a_run_takes() -> None:
    command = [sys.executable, "-m", "drills", "backtest", "--help"]
    said = " ".join(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split())
    assert "(default: 12, which take about half an hour on two cores)" in said
    assert "one month of chat-8b, in a minute or two" in said


def test_a_run_that_is_stopped_ends_soon_and_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "drills", "backtest", "--months", "2"]
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "TMPDIR": str(tmp_path)}, stderr=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("backtest-*/scraped.om")):
            assert process.poll() is None
            assert time.monotonic() < deadline, "nothing was drawn"
            time.sleep(0.05)
        process.terminate()
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert said.endswith("stopped\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--seed", "-1"), "argument --seed: expected a whole number, 0 or more, got '-1'"),
        (("--months", "0"), "argument --months: expected a whole number, 1 to 1200, got '0'"),
        (("--json", "/dev/null/x"), "cannot run: [Errno 20] Not a directory: '/dev/null/x'"),
        (("--plots", "/dev/null"), "cannot run: [Errno 17] File exists: '/dev/null'"),
    ],
)
def test_what_cannot_be_run_is_refused_before_hours_have_passed(options: tuple[str, str], sentence: str) -> None:
    command = [sys.executable, "-m", "drills", "backtest", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(sentence)


def colours(path: Path) -> set[str]:
    """Name the colours of alerts that cover more than a speck of a picture, a little off or not."""
    with Image.open(path) as picture:
        shown = np.asarray(picture.convert("RGB"), dtype=np.int64)
    return {name for name, colour in COLOURS.items() if (abs(shown - colour) < 8).all(axis=2).sum() > 100}


def test_a_picture_is_light_fits_a_phone_and_is_the_same_each_time(tmp_path: Path) -> None:
    first, second = tmp_path / "first.png", tmp_path / "second.png"
    draw(SCENE, first)
    draw(SCENE, second)
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_size < 60_000
    with Image.open(first) as picture:
        assert 600 <= picture.width <= 800
        assert picture.convert("RGB").getpixel((2, 2)) == (255, 255, 255)


def test_a_picture_shows_pages_tickets_and_rivals_each_in_its_colour(tmp_path: Path) -> None:
    draw(replace(SCENE, fired=()), tmp_path / "quiet.png")
    draw(SCENE, tmp_path / "loud.png")
    assert colours(tmp_path / "quiet.png") == set()
    assert colours(tmp_path / "loud.png") == set(COLOURS)
