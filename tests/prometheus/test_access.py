"""Exporters that are guarded, or several: Prometheus is told where they are and who it is, and takes it."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from exporter.access import Access
from exporter.document import FleetError
from exporter.fleet import Fleet, load
from prometheus.deployment import Deployment
from prometheus.render import artefacts
from running.tools import Tool

REPLICAS = 'replicas: [{name: a, url: "http://h:1"}]\n'
EVERYTHING = """\
exporter:
  addresses: ["exporter-1:9801", "[::1]:9801"]
  tls: {ca_file: ca.pem, cert_file: cert.pem, key_file: key.pem}
  basic_auth: {username: prometheus, password_file: password}
"""


def fleet_of(folder: Path, section: str) -> Fleet:
    for name in ("ca.pem", "cert.pem", "key.pem", "password"):
        (folder / name).write_text("planted")
    (folder / "fleet.yml").write_text(REPLICAS + section)
    return load(folder / "fleet.yml")


def configuration(fleet: Fleet) -> str:
    return artefacts(fleet, Deployment())["prometheus/generated/prometheus.yml"]


def test_every_job_that_asks_an_exporter_has_the_credentials_and_no_other_has(tmp_path: Path) -> None:
    text = configuration(fleet_of(tmp_path, EVERYTHING))
    jobs: dict[str, Any] = {job["job_name"]: job for job in yaml.safe_load(text)["scrape_configs"]}
    tls = {"ca_file": f"{tmp_path}/ca.pem", "cert_file": f"{tmp_path}/cert.pem", "key_file": f"{tmp_path}/key.pem"}
    user = {"username": "prometheus", "password_file": f"{tmp_path}/password"}
    for job, path in (("replicas", "/targets"), ("gpu", "/gpu/targets")):
        discovery = jobs[job]["http_sd_configs"]
        assert [one["url"] for one in discovery] == [f"https://exporter-1:9801{path}", f"https://[::1]:9801{path}"]
        for asked in (*discovery, jobs[job]):
            assert (asked["tls_config"], asked["basic_auth"]) == (tls, user)
    assert jobs["exporter"]["scheme"] == "https"
    assert jobs["exporter"]["static_configs"] == [{"targets": ["exporter-1:9801", "[::1]:9801"]}]
    assert jobs["exporter"]["basic_auth"] == user
    assert set(jobs["prometheus"]) == set(jobs["alertmanager"]) == {"job_name", "static_configs"}
    assert "planted" not in text


def test_promtool_accepts_it(promtools: Tool, tmp_path: Path) -> None:
    config = tmp_path / "prometheus.yml"
    config.write_text(configuration(fleet_of(tmp_path, EVERYTHING)))
    done = subprocess.run(
        [promtools.path, "check", "config", "--syntax-only", config], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_the_section_nothing_is_said(tmp_path: Path) -> None:
    fleet = fleet_of(tmp_path, "")
    assert fleet.exporter == Access()
    assert "https" not in configuration(fleet)
    assert "basic_auth" not in configuration(fleet)


@pytest.mark.parametrize(
    ("section", "sentence"),
    [
        (
            "{adresses: []}",
            "fleet.yml:2: exporter.adresses: unknown key 'adresses', expected one of: addresses, tls, basic",
        ),
        (
            "{addresses: [exporter]}",
            "fleet.yml:2: exporter.addresses[0]: expected host:port of an exporter, got 'exporter'",
        ),
        (
            "{addresses: ['http://e:1']}",
            "fleet.yml:2: exporter.addresses[0]: expected host:port of an exporter, got 'http:",
        ),
        (
            "{tls: {cert_file: cert.pem}}",
            "fleet.yml:2: exporter.tls: cert_file and key_file belong together: give both, or",
        ),
        (
            "{tls: {ca_file: none.pem}}",
            "fleet.yml:2: exporter.tls.ca_file: expected an existing file (there is none at ",
        ),
        ("{basic_auth: {username: a}}", "fleet.yml:2: exporter.basic_auth: key 'password_file' is missing, got "),
    ],
)
def test_a_section_that_cannot_be_used_is_refused(tmp_path: Path, section: str, sentence: str) -> None:
    with pytest.raises(FleetError) as refusal:
        fleet_of(tmp_path, f"exporter: {section}\n")
    assert str(refusal.value).startswith(sentence)
