"""The command line of the drills, as a shell sees it."""

import re
import subprocess
import sys

from alerts.catalogue import ALERTS
from alerts.model import Severity
from drills.__main__ import catalogue
from running.paths import ROOT


def drills(*arguments: str, seconds: float = 20) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "drills", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False)


def test_every_drill_is_named_after_its_file() -> None:
    files = {path.stem for path in (ROOT / "drills").glob("*.py") if "\nDRILL = " in path.read_text(encoding="utf-8")}
    assert {name.replace("-", "_") for name in catalogue()} == files


def test_every_alert_that_pages_is_proved_by_a_drill() -> None:
    proved = {drill.name: drill.page.alertname for drill in catalogue().values()}
    pages = {alert.drill: alert.name for alert in ALERTS if Severity.PAGE in alert.severities}
    assert pages.items() <= proved.items()


def test_list_names_every_drill_and_its_alert() -> None:
    printed = drills("list")
    assert printed.returncode == 0
    for drill in catalogue().values():
        assert re.search(rf"^{drill.name} .*{drill.page.alertname}", printed.stdout, re.MULTILINE)


def test_an_unknown_drill_is_refused_with_the_known_ones() -> None:
    refused = drills("run", "no-such-drill")
    assert refused.returncode == 2
    assert "no-such-drill" in refused.stderr
    assert "model-down" in refused.stderr


def test_an_impossible_time_scale_is_refused() -> None:
    refused = drills("demo", "--time-scale", "0")
    assert refused.returncode == 2
    assert "--time-scale" in refused.stderr


def test_the_demo_pages_and_resolves_within_90_seconds() -> None:
    demo = drills("demo", seconds=90)
    assert demo.returncode == 0, demo.stdout + demo.stderr
    events = re.findall(r"^ *([\d.]+) s  (.{18})", demo.stdout, re.MULTILINE)
    order = [name.strip() for _, name in events if name.strip()]
    assert order == [
        "fault",
        "first bad sample",
        "pending",
        "firing",
        "page on the phone",
        "healed",
        "recovered",
        "resolved",
        "quiet",
    ]
    assert [float(second) for second, _ in events] == sorted(float(second) for second, _ in events)


def test_a_monitoring_that_is_blind_pages_and_resolves() -> None:
    drill = drills("run", "exporter-killed", seconds=90)
    assert drill.returncode == 0, drill.stdout + drill.stderr
    assert "one page, resolved, and nothing else paged (LLMMonitoringBlind)" in drill.stdout
    assert drill.stdout.endswith("passed: exporter-killed\n")
