"""LLMGPUSourceDown and LLMGPULost, in promtool: who tells of cards is gone, once; a card is lost, each; limits move."""

import subprocess
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from alerts.render import artefacts as alert_files
from exporter.cards import Gpus
from exporter.fleet import Fleet, Replica
from exporter.thresholds import Thresholds, ThresholdTable
from prometheus.deployment import Deployment
from prometheus.render import artefacts as prometheus_files
from running.tools import Tool
from tests.prometheus.promtool import Case, Expect, Rules, run

FLEET = Fleet(replicas=(Replica(name="r", url="http://127.0.0.1:8000"),))
RULES = Rules(fleet=FLEET, stages=("hardware", "alerts-gpu"))
PAGE = 'source="dcgm",origin="node-1:9400",instance="h"'
DRIVER = 'source="nvml",instance="h"'
LOST, DOWN = "LLMGPULost", "LLMGPUSourceDown"
OF_PAGE = 'severity="ticket",source="dcgm",origin="node-1:9400"'
OF_DRIVER = 'severity="ticket",source="nvml",instance="h"'
OF_HOST = 'severity="ticket",instance="node-3:9801"'


def alerts(at: str, **labels: str) -> Expect:
    """Expect these alerts to fire and no other ones; one sample each."""
    fire = {f'ALERTS{{alertname="{name}",alertstate="firing",{each}}}': 1.0 for name, each in labels.items()}
    return Expect(at=at, expr='ALERTS{alertstate="firing"}', samples=fire)


def claimed(*cards: str) -> dict[str, str]:
    return {f'llm_replica_gpu_info{{model="m",replica="r",gpu="{card}",instance="h"}}': "1x400" for card in cards}


def cards(up: str, *names: str, instance: str = "h") -> dict[str, str]:
    return {f'llm_gpu_up{{gpu="{name}",instance="{instance}"}}': up for name in names}


def unseen(values: str, *names: str) -> dict[str, str]:
    return {f'llm_gpu_failure{{gpu="{name}",reason="unseen",instance="h"}}': values for name in names}


def source(labels: str, up: str, count: str, **failures: str) -> dict[str, str]:
    return {f"llm_gpu_collector_up{{{labels}}}": up, f"llm_gpu_collector_cards{{{labels}}}": count} | {
        f'llm_gpu_collector_failure{{{labels},reason="{reason}"}}': values for reason, values in failures.items()
    }


DIES = "1x29 0x100"
SEEN_THEN_NOT = "1x29 stale"
PAGE_CASES = [
    Case(
        claim="a page that dies is one ticket, whatever stands behind it, and closes when it is back",
        series=claimed("GPU-a", "GPU-b")
        | cards("1x29 stale _x99 1x60", "GPU-a", "GPU-b", "GPU-c")
        | unseen("_x30 1x99 stale", "GPU-a", "GPU-b", "GPU-c")
        | source(PAGE, "1x29 0x99 1x60", "3x190", unreachable="_x30 1x99 stale"),
        expect=[
            alerts("6m30s"),
            alerts("8m", **{DOWN: OF_PAGE}),
            alerts("21m", **{DOWN: OF_PAGE}),
            alerts("22m30s"),
            alerts("29m"),
        ],
    ),
    Case(
        claim="a card that no source has shown may stand behind a page that is gone",
        series=claimed("GPU-a") | source(PAGE, "0x100", "0x100", timeout="1x100"),
        expect=[alerts("5m", **{DOWN: OF_PAGE}), alerts("16m", **{DOWN: OF_PAGE})],
    ),
    Case(
        claim="a card that its living source lost is lost, beside a page that is gone",
        series=claimed("GPU-a", "GPU-b")
        | cards("1x29 0x100", "GPU-a")
        | cards(SEEN_THEN_NOT, "GPU-b")
        | unseen("_x30 1x100", "GPU-b")
        | source(DRIVER, "1x130", "1x130")
        | source(PAGE, DIES, "1x130", stale="_x30 1x100"),
        expect=[alerts("8m30s", **{DOWN: OF_PAGE, LOST: 'severity="ticket",gpu="GPU-a",model="m",replica="r"'})],
    ),
    Case(
        claim="a page that one exporter can read is not gone",
        series=claimed("GPU-a")
        | cards("1x200", "GPU-a")
        | source(PAGE, "0x200", "0x200", unreachable="1x200")
        | source(PAGE.replace('"h"', '"k"'), "1x200", "1x200"),
        expect=[alerts("5m"), alerts("20m")],
    ),
    Case(
        claim="one failed look in four is no news",
        series=cards("1x3 _ " * 40, "GPU-a") | source(PAGE, "1 1 1 0 " * 40, "1x160", timeout="_ _ _ 1 stale " * 30),
        expect=[alerts(f"{minute}m") for minute in range(2, 25)],
    ),
]
DRIVER_CASES = [
    Case(
        claim=f"a driver that ends in {reason} takes its cards out of sight, once",
        series=claimed("GPU-a", "GPU-b")
        | cards(SEEN_THEN_NOT, "GPU-a", "GPU-b")
        | unseen("_x30 1x100", "GPU-a", "GPU-b")
        | source(DRIVER, DIES, "2x130", **{reason: "_x30 1x100"}),
        expect=[alerts("6m30s"), alerts("8m30s", **{DOWN: OF_DRIVER})],
    )
    for reason in ("timeout", "driver_mismatch", "crashed", "no_driver", "no_library")
] + [
    Case(
        claim="a host without cards has no driver, and nobody hears of it",
        series=source(DRIVER, "0x200", "0x200", no_library="1x200"),
        expect=[alerts("5m"), alerts("25m")],
    ),
    Case(
        claim="a driver that finds no card any more has lost it: that is the card's ticket",
        series=claimed("GPU-a") | cards("1x29 0x100", "GPU-a") | source(DRIVER, DIES, "1x130", no_gpu="_x30 1x100"),
        expect=[alerts("8m30s", **{LOST: 'severity="ticket",gpu="GPU-a",model="m",replica="r"'})],
    ),
]
HOST_CASES = [
    Case(
        claim="an exporter that is gone takes its cards out of sight, once",
        series=claimed("GPU-a", "GPU-b")
        | {f'llm_gpu_up{{gpu="GPU-{one}",instance="node-3:9801"}}': "1x89 stale" for one in "ab"}
        | source('source="nvml",instance="node-3:9801"', "1x89 stale", "2x89 stale")
        | {'up{job="gpu",instance="node-3:9801"}': "1x89 0x100", 'up{job="gpu",instance="h"}': "1x190"},
        expect=[alerts("14m"), alerts("18m", **{DOWN: OF_HOST}), alerts("31m", **{DOWN: OF_HOST})],
    ),
    Case(
        claim="an exporter that had no cards takes none away",
        series=source('source="nvml",instance="node-3:9801"', "0x89 stale", "0x89 stale", no_library="1x89 stale")
        | {'up{job="gpu",instance="node-3:9801"}': "1x89 0x100"},
        expect=[alerts("18m"), alerts("31m")],
    ),
]


def test_a_page_that_is_gone_is_one_ticket(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, RULES, PAGE_CASES)


def test_a_driver_that_is_gone_is_one_ticket(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, RULES, DRIVER_CASES)


def test_an_exporter_that_is_gone_is_one_ticket(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, RULES, HOST_CASES)


@pytest.mark.parametrize(("url", "instance"), [("http://node-3:9801", "node-3:9801"), ("http://node-3", "node-3:80")])
def test_an_exporter_that_fleet_yml_names_for_its_cards_is_missed_from_the_start(
    promtools: Tool, tmp_path: Path, url: str, instance: str
) -> None:
    fleet = replace(FLEET, gpus=Gpus(exporters=(url,)))
    case = Case(
        claim="never seen, and named",
        series={f'up{{job="gpu",instance="{instance}"}}': "0x100", 'up{job="gpu",instance="other:9801"}': "0x100"},
        expect=[alerts("5m", **{DOWN: f'severity="ticket",instance="{instance}"'})],
    )
    run(promtools, tmp_path, replace(RULES, fleet=fleet), [case])


def test_limits_are_those_of_fleet_yml_for_the_model_that_a_card_serves(promtools: Tool, tmp_path: Path) -> None:
    strict = Thresholds(
        gpu_xid=timedelta(minutes=30),
        gpu_throttled=Decimal("0.2"),
        gpu_memory_free=Decimal("0.1"),
        gpu_idle=Decimal("0.4"),
    )
    fleet = replace(FLEET, thresholds=ThresholdTable(models={"strict": strict}))
    of = {"a": "strict", "b": "m"}
    series = {
        f'llm_replica_gpu_info{{model="{model}",replica="{card}",gpu="GPU-{card}",instance="h"}}': "1x300"
        for card, model in of.items()
    }
    for card in "abc":
        on = f'gpu="GPU-{card}",instance="h"'
        series |= {
            f"llm_gpu_up{{{on}}}": "1x300",
            f'llm_gpu_xid_last_timestamp_seconds{{{on},xid="79"}}': "60x300",
            f'llm_gpu_throttled{{{on},reason="hardware_thermal"}}': "1 0 0 " * 100,
            f"llm_gpu_memory_free_bytes{{{on}}}": "5x300",
            f"llm_gpu_memory_total_bytes{{{on}}}": "100x300",
            f"llm_gpu_utilization_ratio{{{on}}}": "0.3x300",
            f'llm_requests_waiting{{model="{of.get(card, "")}",replica="{card}"}}': "3x300",
        }
    everything = ("LLMGPUXid", "LLMGPUThrottled", "LLMGPUMemoryNearFull")
    case = Case(
        claim="only the card of the strict model is beyond its limits",
        series=series,
        expect=[
            alerts(
                "20m",
                **dict.fromkeys(everything, 'severity="ticket",gpu="GPU-a",model="strict",replica="a"'),
                LLMGPUIdleWithQueue='severity="ticket",model="strict",replica="a"',
            )
        ],
    )
    run(promtools, tmp_path, replace(RULES, fleet=fleet), [case])


def test_a_ticket_says_who_is_gone_how_many_cards_with_it_and_which_names_nobody_shows(
    promtools: Tool, tmp_path: Path
) -> None:
    series = claimed("GPU-a") | source(PAGE, "0x60", "3x60", stale="1x60")
    down = {
        "summary": "GPUs behind dcgm node-1:9400 cannot be seen",
        "description": (
            "dcgm node-1:9400 has not told of its cards for 2m; reason: stale. 3 cards cannot be seen and may be well"
            " or lost; no other GPU alert can speak of them."
        ),
    }
    _told(promtools, tmp_path, series, DOWN, {"source": "dcgm", "origin": "node-1:9400"}, down)
    driver = {
        "summary": "GPUs behind the driver of h cannot be seen",
        "description": down["description"].replace("dcgm node-1:9400", "the driver of h").replace("stale", "timeout"),
    }
    _told(
        promtools,
        tmp_path,
        source(DRIVER, "0x60", "3x60", timeout="1x60"),
        DOWN,
        {"source": "nvml", "instance": "h"},
        driver,
    )
    lost = {
        "summary": "m: a GPU of r is shown by no source",
        "description": (
            "fleet.yml names GPU-a, and no source has shown it for 2m: the name may be wrong, or nobody tells of its"
            " host."
        ),
    }
    _told(promtools, tmp_path, claimed("GPU-a"), LOST, {"gpu": "GPU-a", "model": "m", "replica": "r"}, lost)


def _told(  # noqa: PLR0913, PLR0917 - what goes in, and every part of what comes out
    promtool: Tool, folder: Path, series: dict[str, str], name: str, labels: dict[str, str], texts: dict[str, str]
) -> None:
    files = {**prometheus_files(FLEET, Deployment()), **alert_files(FLEET, Deployment())}
    for stage in ("hardware", "gpu"):
        [text] = [text for path, text in files.items() if path.endswith(f"/rules/{stage}.yml")]
        (folder / f"{stage}.yml").write_text(text, encoding="utf-8")
    board = "?var-model=m" if "model" in labels else ""
    links = {
        "runbook_url": f"http://127.0.0.1:9801/runbooks/{name}",
        "dashboard_url": f"http://127.0.0.1:3000/d/fleet{board}",
    }
    expected = {"exp_labels": {"severity": "ticket", **labels}, "exp_annotations": {**texts, **links}}
    document = {
        "rule_files": ["hardware.yml", "gpu.yml"],
        "evaluation_interval": "10s",
        "group_eval_order": ["hardware", "alerts-gpu"],
        "tests": [
            {
                "interval": "10s",
                "input_series": [{"series": key, "values": values} for key, values in series.items()],
                "alert_rule_test": [{"eval_time": "5m", "alertname": name, "exp_alerts": [expected]}],
            }
        ],
    }
    (folder / "test.yml").write_text(yaml.safe_dump(document), encoding="utf-8")
    done = subprocess.run(
        [promtool.path, "test", "rules", "test.yml"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
