"""Prometheus and Alertmanager start with the product's flags in every version found."""

from pathlib import Path

from running.ports import is_free
from running.services import start_alertmanager, start_prometheus
from running.tools import Tool


def test_every_prometheus_starts_and_leaves_its_port(prometheus_binaries: Tool, tmp_path: Path, free_port: int) -> None:
    config = tmp_path / "prometheus.yml"
    config.write_text("global: {scrape_interval: 1s}\n")
    log = tmp_path / "log"
    with start_prometheus(prometheus_binaries.path, config=config, data=tmp_path / "data", port=free_port, log=log):
        assert not is_free(free_port)
    assert is_free(free_port)
    assert "error" not in log.read_text()


def test_every_alertmanager_starts_and_leaves_its_port(
    alertmanager_binaries: Tool, tmp_path: Path, free_port: int
) -> None:
    config = tmp_path / "alertmanager.yml"
    config.write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
    log = tmp_path / "log"
    with start_alertmanager(alertmanager_binaries.path, config=config, data=tmp_path / "data", port=free_port, log=log):
        assert not is_free(free_port)
    assert is_free(free_port)
    assert "error" not in log.read_text()
