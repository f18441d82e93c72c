"""The command, as a shell sees it: a small run on a fixed seed, and the pictures."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np

from drills.backtest.incidents import Incident
from drills.backtest.plots import Scene, draw
from running.paths import ROOT
from tests.drills.backtest.test_judge import START, fired


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


def test_a_picture_names_the_alerts_and_is_the_same_each_time(tmp_path: Path) -> None:
    at = np.arange(START - 600, START + 1200, 10)
    scene = Scene(
        incident=Incident(model="m", shape="flapping", slo="ttft", start=START, duration=600, size=1, period=60),
        slo="ttft",
        objective=0.99,
        at=at,
        good=np.where((at >= START) & (at < START + 600), 0.5, 1.0),
        left=np.linspace(1, 0.9, len(at)),
        fired=(fired(100), fired(200, severity="ticket")),
    )
    first, second = tmp_path / "first.svg", tmp_path / "second.svg"
    draw(scene, first)
    draw(scene, second)
    assert first.read_bytes() == second.read_bytes()
    text = " ".join(ET.fromstring(first.read_text(encoding="utf-8")).itertext())  # noqa: S314 - drawn just now
    for words in ("Flapping (time to first token)", "LLMAvailabilityBudgetBurn (page)", "(ticket)", "minutes from"):
        assert words in text
    assert first.stat().st_size < 40_000
