"""Names of Prometheus and Alertmanager themselves: the lint knows prefixes, and every version really has the names."""

import time
from pathlib import Path

import requests

import generate
from exporter.fleet import load
from prometheus.deployment import LOCAL, Deployment
from prometheus.lint.reading import read
from prometheus.lint.tree import selectors
from running import tools
from running.paths import ROOT
from running.ports import free_port
from running.services import start_alertmanager, start_prometheus
from tests.prometheus.lint.test_generated import SOURCES, expressions

FLEET = load(ROOT / "fleet.yml")


def used(prefix: str) -> set[str]:
    """List the names with a prefix in everything that is shipped."""
    written = (each for path, text in expressions(FLEET).items() for each in SOURCES[Path(path).suffix](path, text))
    names = {selector.metric or "" for each in written for selector in selectors(read(each.text))}
    return {name for name in names if name.startswith(prefix)}


def shown(port: int) -> set[str]:
    page = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=10).text
    return {line.split("{")[0].split(" ")[0] for line in page.splitlines() if not line.startswith("#")}


def missing(asked: set[str], port: int) -> set[str]:
    """Wait for names: those about Alertmanagers come when Prometheus has discovered one."""
    deadline = time.monotonic() + 20
    while asked - shown(port) and time.monotonic() < deadline:
        time.sleep(0.2)
    return asked - shown(port)


def written(directory: Path) -> Path:
    generate.write(generate.artefacts(FLEET, Deployment(addresses=LOCAL)), directory)
    return directory


def test_every_prometheus_shows_the_names_we_use(tmp_path: Path) -> None:
    asked = used("prometheus_")
    assert asked
    binaries = tools.all_versions("prometheus")
    assert binaries, tools.missing("prometheus")
    config = written(tmp_path) / "prometheus/generated/prometheus.yml"
    for binary in binaries:
        data, port, log = tmp_path / f"data-{binary.version}", free_port(), tmp_path / "prometheus.log"
        with start_prometheus(binary.path, config=config, data=data, port=port, log=log):
            assert missing(asked, port) == set(), str(binary)


def test_every_alertmanager_shows_the_names_we_use(tmp_path: Path) -> None:
    asked = used("alertmanager_")
    assert asked
    binaries = tools.all_versions("alertmanager")
    assert binaries, tools.missing("alertmanager")
    config = written(tmp_path) / "alerts/generated/alertmanager.yml"
    for binary in binaries:
        data, port, log = tmp_path / f"data-{binary.version}", free_port(), tmp_path / "alertmanager.log"
        with start_alertmanager(binary.path, config=config, data=data, port=port, log=log):
            assert missing(asked, port) == set(), str(binary)
