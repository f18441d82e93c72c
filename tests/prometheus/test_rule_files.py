"""Rule files and prometheus.yml: as expected byte by byte, and valid for every promtool."""

import re
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from exporter.catalogue import METRICS
from exporter.fleet import Fleet
from generate import artefacts, write
from prometheus.deployment import COMPOSE, LOCAL, Addresses, Deployment
from prometheus.windows import TimeScale
from running.tools import Tool
from tests.prometheus.fleets import GOLDEN, MIXED, rule_files

DEPLOYMENTS = [
    Deployment(),
    Deployment(addresses=LOCAL),
    Deployment(addresses=LOCAL, scale=TimeScale(factor=60)),
    Deployment(scale=TimeScale(factor=7)),
]


def generated(fleet: Fleet, deployment: Deployment, directory: Path) -> Path:
    """Write the generated tree and return it."""
    write(artefacts(fleet, deployment), directory)
    return directory


@pytest.mark.parametrize("name", sorted(rule_files()))
def test_rules_of_a_mixed_fleet_are_as_before(name: str) -> None:
    assert rule_files()[name] == (GOLDEN / name).read_text(encoding="utf-8"), (
        "if the difference is meant, run `python -m tests.prometheus.fleets` and review it"
    )


def test_every_golden_file_belongs_to_a_rule_file() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == set(rule_files())


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=str)
def test_promtool_accepts_configuration_and_rules(promtools: Tool, tmp_path: Path, deployment: Deployment) -> None:
    root = generated(MIXED, deployment, tmp_path)
    rules = sorted(root.glob("*/generated/rules/*.yml"))
    config = root / "prometheus/generated/prometheus.yml"
    checks: list[list[str | Path]] = [["config", config], ["rules", "--lint=all", "--lint-fatal", *rules]]
    for arguments in checks:
        result = subprocess.run([promtools.path, "check", *arguments], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
    assert len(rules) == len(rule_files())


def test_the_configuration_finds_every_rule_file(tmp_path: Path) -> None:
    root = generated(MIXED, Deployment(), tmp_path)
    config = root / "prometheus/generated/prometheus.yml"
    patterns = yaml.safe_load(config.read_text(encoding="utf-8"))["rule_files"]
    ours = [pattern for pattern in patterns if not Path(pattern).is_absolute()]
    found = {path.resolve() for pattern in ours for path in config.parent.glob(pattern)}
    assert found == {path.resolve() for path in root.glob("*/generated/rules/*.yml")}


@pytest.mark.parametrize(("addresses", "exporter"), [(COMPOSE, "exporter:9801"), (LOCAL, "127.0.0.1:9801")])
def test_prometheus_asks_the_exporter_for_its_targets(addresses: Addresses, exporter: str) -> None:
    text = artefacts(MIXED, Deployment(addresses=addresses))["prometheus/generated/prometheus.yml"]
    jobs = {job["job_name"]: job for job in yaml.safe_load(text)["scrape_configs"]}
    assert jobs["replicas"]["http_sd_configs"][0]["url"] == f"http://{exporter}/targets"
    assert jobs["gpu"]["http_sd_configs"][0]["url"] == f"http://{exporter}/gpu/targets"
    assert set(jobs) == {"replicas", "gpu", "exporter", "prometheus", "alertmanager"}


def test_no_label_is_dropped_or_rewritten_on_the_way_in() -> None:
    """Relabelling that drops a label can make two replicas collide, and Prometheus says nothing."""
    assert "relabel" not in artefacts(MIXED, Deployment())["prometheus/generated/prometheus.yml"]


def test_the_time_scale_divides_durations_and_changes_nothing_else() -> None:
    scaled, real = (artefacts(MIXED, Deployment(scale=TimeScale(factor=factor))) for factor in (1000, 1))
    number = re.compile(r"\b\d+(?:\.\d+)?(?:ms|[smhd])?\b")
    for path, text in real.items():
        if path.endswith(".yml"):
            assert number.sub("", text) == number.sub("", scaled[path])
            for slow, fast in zip(number.findall(text), number.findall(scaled[path]), strict=True):
                is_duration = slow[-1].isalpha() and fast[-1].isalpha()
                # A span may also stand there as a number of seconds, to turn a rate into a count, for instance.
                assert slow == fast or is_duration or Decimal(slow) == 1000 * Decimal(fast)


def test_a_scaled_rule_reads_as_the_real_one_does() -> None:
    path = "prometheus/generated/rules/indicators.yml"
    text = artefacts(MIXED, Deployment(scale=TimeScale(factor=60)))[path]
    assert (
        "record: model:llm_ttft_total:rate6h\n    expr: sum_over_time(model:llm_ttft_total:rate5m[6m:5s]) / 72" in text
    )


def test_decimals_are_exact_in_every_rule() -> None:
    for name, text in rule_files().items():
        for number in re.findall(r"\d+\.\d+", text):
            digits = number.partition(".")[2]
            assert len(digits) <= 4, f"{name}: {number} is no decimal that anybody wrote"


def test_recorded_names_have_colons_and_scraped_ones_have_none() -> None:
    for text in rule_files().values():
        for group in yaml.safe_load(text)["groups"]:
            for rule in group["rules"]:
                assert "record" not in rule or re.fullmatch(r"[a-z_]+:llm_[a-z_]+:[a-z0-9_]+", rule["record"])


def test_every_series_in_a_rule_is_in_the_catalogue_or_recorded() -> None:
    scraped = {name for metric in METRICS for name in (metric.name, metric.bucket, metric.count, metric.sum)}
    groups = [group for text in rule_files().values() for group in yaml.safe_load(text)["groups"]]
    rules = [rule for group in groups for rule in group["rules"]]
    known = scraped | {rule["record"] for rule in rules if "record" in rule}
    for rule in rules:
        for text in (rule["expr"], *rule.get("annotations", {}).values()):
            assert set(re.findall(r"\b(?:[a-z_]+:)?llm_[a-z0-9_:]+", text)) <= known
