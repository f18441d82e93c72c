"""The README says what is true: its fleet.yml can be used, its files exist, its drill is the one that runs."""

import re
from pathlib import Path

import trustme

from drills.__main__ import catalogue
from exporter.fleet import load
from running.paths import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_fleet_of_the_readme_can_be_used(tmp_path: Path) -> None:
    fleet = "".join(re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)).replace("/run/secrets/", "")
    for name in re.findall(r"_file: ([\w.-]+)", fleet):
        (tmp_path / name).write_text("a secret")
    for name in re.findall(r"\bca_file: ([\w.-]+)", fleet):
        trustme.CA().cert_pem.write_to_path(str(tmp_path / name))
    (tmp_path / "fleet.yml").write_text(fleet)
    assert [replica.name for replica in load(tmp_path / "fleet.yml").replicas] == ["vllm-a", "batch"]


def test_every_file_that_the_readme_links_to_exists() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert len(links) > 10
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_timeline_of_the_readme_is_that_of_the_demo() -> None:
    drill = catalogue()["model-down"]
    for words in (drill.summary, drill.bad_sample, f"{drill.page.alertname} {drill.page.model}"):
        assert words in README
