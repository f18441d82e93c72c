"""LLMGPU*, in promtool: each fires for the replica that suffers, and stays quiet for what is normal."""

import subprocess
from pathlib import Path

import yaml

from alerts.render import artefacts as alert_files
from exporter.fleet import Fleet, Replica
from prometheus.deployment import Deployment
from prometheus.render import artefacts as prometheus_files
from running.tools import Tool
from tests.prometheus.promtool import Case, Expect, Rules, run, samples

RULES = Rules(
    fleet=Fleet(replicas=(Replica(name="r", url="http://127.0.0.1:8000"),)), stages=("hardware", "alerts-gpu")
)
CLAIMED = {'llm_replica_gpu_info{model="m",replica="r",gpu="GPU-a",instance="h"}': "1x600"}
CARD = 'gpu="GPU-a",instance="h"'
OTHER = 'gpu="GPU-b",instance="h"'
UP = {f"llm_gpu_up{{{CARD}}}": "1x600"}
HEALTHY = CLAIMED | UP
OF_R = 'severity="ticket",gpu="GPU-a",model="m",replica="r"'


def firing(at: str, alertname: str, *labels: str) -> Expect:
    expr = f'ALERTS{{alertname="{alertname}",alertstate="firing"}}'
    start = f'ALERTS{{alertname="{alertname}",alertstate="firing"'
    return Expect(at=at, expr=expr, samples={f"{start},{each}}}": 1 for each in labels})


def silent(at: str) -> Expect:
    return Expect(at=at, expr='ALERTS{alertstate="firing"}')


LOST = "LLMGPULost"
LOST_CASES = [
    Case(
        claim="a card that does not answer for two minutes is lost, and found again with its first answer",
        series=CLAIMED | {f"llm_gpu_up{{{CARD}}}": "1x29 0x59 1x60", f"llm_gpu_up{{{OTHER}}}": "1x150"},
        expect=[
            firing("6m30s", LOST),
            firing("7m20s", LOST, OF_R),
            firing("14m30s", LOST, OF_R),
            firing("15m30s", LOST),
        ],
    ),
    Case(
        claim="a card that fleet.yml names and nobody sees is lost",
        series=CLAIMED | {f"llm_gpu_up{{{OTHER}}}": "1x150"},
        expect=[firing("1m50s", LOST), firing("3m", LOST, OF_R)],
    ),
    Case(
        claim="a card that serves nobody we know is lost as well",
        series={f"llm_gpu_up{{{OTHER}}}": "1x10 0x90"},
        expect=[firing("8m", LOST, 'severity="ticket",gpu="GPU-b"')],
    ),
    Case(
        claim="another exporter that cannot see the card takes nothing away from the one that can",
        series=CLAIMED
        | {
            'llm_replica_gpu_info{model="m",replica="r",gpu="GPU-a",instance="central"}': "1x200",
            f"llm_gpu_up{{{CARD}}}": "1x100",
            'llm_gpu_collector_up{source="nvml",instance="central"}': "0x100",
        },
        expect=[silent(at) for at in ("3m", "9m", "15m")],
    ),
    Case(
        claim="a restart of the exporter loses no card",
        series=CLAIMED | {f"llm_gpu_up{{{CARD}}}": "1x29 stale _x3 0x2 1x60"},
        expect=[silent(f"{second}s") for second in range(60, 900, 10)],
    ),
    Case(
        claim="a divided card that is lost is told to whoever uses a part of it",
        series={
            'llm_replica_gpu_info{model="m",replica="r",gpu="GPU-a",partition="3"}': "1x200",
            f"llm_gpu_up{{{CARD}}}": "0x100",
        },
        expect=[firing("5m", LOST, f'{OF_R},partition="3"')],
    ),
]

# promtool's time begins at 0, so a time of an error is a moment of the case.
XID_CASES = [
    Case(
        claim="an Xid is told at once, for ten minutes, and a repeat starts them anew",
        series=HEALTHY | {f'llm_gpu_xid_last_timestamp_seconds{{{CARD},xid="79"}}': "_x30 300x29 600x200"},
        expect=[
            firing("4m50s", "LLMGPUXid"),
            firing("5m", "LLMGPUXid", OF_R),
            firing("15m30s", "LLMGPUXid", OF_R),
            firing("20m10s", "LLMGPUXid"),
        ],
    ),
    Case(
        claim="the end of a process is no trouble with a card",
        series=HEALTHY | {f'llm_gpu_xid_last_timestamp_seconds{{{CARD},xid="45"}}': "0x60"},
        expect=[silent("1m"), silent("9m")],
    ),
    Case(
        claim="several errors of one card are one alert",
        series=HEALTHY | {f'llm_gpu_xid_last_timestamp_seconds{{{CARD},xid="{xid}"}}': "0x60" for xid in (31, 48, 79)},
        expect=[firing("1m", "LLMGPUXid", OF_R)],
    ),
]

ECC_CASES = [
    Case(
        claim="an uncorrectable error is told for an hour",
        series=HEALTHY
        | {f'llm_gpu_ecc_errors_total{{{CARD},kind="uncorrected"}}': samples((60, 0), (1, 1), (500, 0), start=3)},
        expect=[
            firing("9m", "LLMGPUEccUncorrected"),
            firing("11m", "LLMGPUEccUncorrected", OF_R),
            firing("69m", "LLMGPUEccUncorrected", OF_R),
            firing("72m", "LLMGPUEccUncorrected"),
        ],
    ),
    Case(
        claim="corrected errors, errors of last year and replaced rows are normal",
        series=HEALTHY
        | {
            f'llm_gpu_ecc_errors_total{{{CARD},kind="corrected"}}': samples((100, 5)),
            f'llm_gpu_ecc_errors_total{{{CARD},kind="uncorrected"}}': "17x100",
            f'llm_gpu_remapped_rows{{{CARD},kind="uncorrectable"}}': "3x100",
            f'llm_gpu_remapped_rows{{{CARD},kind="failed"}}': "0x100",
        },
        expect=[silent("5m"), silent("15m")],
    ),
    Case(
        claim="a card without spare rows is ill, with or without an error today",
        series=HEALTHY
        | {
            f'llm_gpu_ecc_errors_total{{{CARD},kind="uncorrected"}}': "0x100",
            f'llm_gpu_remapped_rows{{{CARD},kind="failed"}}': "1x100",
        },
        expect=[firing("5m", "LLMGPUEccUncorrected", OF_R)],
    ),
    Case(
        claim="a driver that is loaded again starts counting anew",
        series=HEALTHY | {f'llm_gpu_ecc_errors_total{{{CARD},kind="uncorrected"}}': "17x30 0x60"},
        expect=[silent("4m"), silent("6m"), silent("14m")],
    ),
]


def throttled(**values: str) -> dict[str, str]:
    return {f'llm_gpu_throttled{{{CARD},reason="{reason}"}}': value for reason, value in values.items()}


THROTTLED_CASES = [
    Case(
        claim="a card that heat slows down for minutes brings a ticket, which closes when it is cool",
        series=HEALTHY | throttled(hardware_thermal="0x29 1x89 0x90", software_thermal="0x210"),
        expect=[
            firing("7m", "LLMGPUThrottled"),
            firing("14m", "LLMGPUThrottled", OF_R),
            firing("24m", "LLMGPUThrottled"),
        ],
    ),
    Case(
        claim="a card at its power cap is where it should be",
        series=HEALTHY | throttled(power_cap="1x200", hardware_slowdown="0x200"),
        expect=[silent("15m"), silent("30m")],
    ),
    Case(
        claim="a warm minute is normal",
        series=HEALTHY | throttled(software_thermal="0x30 1x6 0x100"),
        expect=[silent(f"{minute}m") for minute in range(5, 20)],
    ),
]

FULL_CASES = [
    Case(
        claim="a card with 1 % free for ten minutes is nearly full",
        series=HEALTHY
        | {f"llm_gpu_memory_free_bytes{{{CARD}}}": "50x29 1x200", f"llm_gpu_memory_total_bytes{{{CARD}}}": "100x230"},
        expect=[firing("15m", "LLMGPUMemoryNearFull"), firing("21m", "LLMGPUMemoryNearFull", OF_R)],
    ),
    Case(
        claim="an engine that takes nine tenths of a card at its start is normal",
        series=HEALTHY
        | {f"llm_gpu_memory_free_bytes{{{CARD}}}": "5x200", f"llm_gpu_memory_total_bytes{{{CARD}}}": "100x200"},
        expect=[silent("20m"), silent("30m")],
    ),
    Case(
        claim="a card that shares the host's memory cannot be full",
        series=HEALTHY,
        expect=[silent("20m")],
    ),
    Case(
        claim="a full instance is told to its replica and to no other one",
        series={
            f'llm_replica_gpu_info{{model="m",replica="{name}",gpu="GPU-a",partition="{part}"}}': "1x200"
            for name, part in (("r", 3), ("s", 5))
        }
        | UP
        | {f'llm_gpu_memory_free_bytes{{{CARD},partition="{part}"}}': f"{free}x200" for part, free in ((3, 1), (5, 50))}
        | {f'llm_gpu_memory_total_bytes{{{CARD},partition="{part}"}}': "100x200" for part in (3, 5)},
        expect=[firing("20m", "LLMGPUMemoryNearFull", f'{OF_R},partition="3"')],
    ),
]


def idle(utilization: str, waiting: str, *, part: str = "") -> dict[str, str]:
    label = f',partition="{part}"' if part else ""
    return {
        f'llm_replica_gpu_info{{model="m",replica="r",gpu="GPU-a"{label}}}': "1x200",
        f"llm_gpu_utilization_ratio{{{CARD}{label}}}": utilization,
        'llm_requests_waiting{model="m",replica="r",engine="vllm",rank="0"}': waiting,
    } | UP


IDLE = "LLMGPUIdleWithQueue"
OF_IDLE = 'severity="ticket",model="m",replica="r"'
IDLE_CASES = [
    Case(
        claim="requests that wait at a replica whose card does nothing bring a ticket",
        series=idle("0.9x29 0x100", "3x130"),
        expect=[firing("9m", IDLE), firing("13m", IDLE, OF_IDLE)],
    ),
    Case(claim="a busy card with a queue is busy", series=idle("0.93x200", "30x200"), expect=[silent("20m")]),
    Case(claim="an idle card without a queue is idle", series=idle("0x200", "0x200"), expect=[silent("20m")]),
    Case(
        claim="a queue that empties now and then moves", series=idle("0x200", "3x5 0 4x100 3x90"), expect=[silent("4m")]
    ),
    Case(
        claim="nobody can tell how busy an instance is",
        series=idle("0x200", "3x200", part="3"),
        expect=[silent("20m")],
    ),
    Case(
        claim="one busy card of two is work",
        series=idle("0x200", "3x200")
        | {
            'llm_replica_gpu_info{model="m",replica="r",gpu="GPU-b"}': "1x200",
            f"llm_gpu_up{{{OTHER}}}": "1x200",
            f"llm_gpu_utilization_ratio{{{OTHER}}}": "0.4x200",
        },
        expect=[silent("20m")],
    ),
]

QUIET_CASES = [
    Case(
        claim="a fleet without cards hears nothing",
        series={
            'llm_gpu_collector_up{source="nvml",instance="h"}': "0x200",
            'llm_gpu_collector_failure{source="nvml",reason="no_library",instance="h"}': "1x200",
            'llm_requests_waiting{model="m",replica="r"}': "9x200",
        },
        expect=[silent("5m"), silent("30m")],
    ),
]


def test_a_lost_card_is_told_to_whom_it_serves(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, RULES, LOST_CASES)


def test_errors_of_a_card_are_news_for_a_while(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, RULES, [*XID_CASES, *ECC_CASES])


def test_slow_full_and_idle_cards_are_told_apart_from_busy_ones(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, RULES, [*THROTTLED_CASES, *FULL_CASES, *IDLE_CASES])


def test_without_cards_nothing_fires(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, RULES, QUIET_CASES)


def test_a_ticket_says_which_card_whose_it_is_and_why(promtools: Tool, tmp_path: Path) -> None:
    files = {**prometheus_files(RULES.fleet, Deployment()), **alert_files(RULES.fleet, Deployment())}
    for name in ("hardware", "gpu"):
        [text] = [text for path, text in files.items() if path.endswith(f"/rules/{name}.yml")]
        (tmp_path / f"{name}.yml").write_text(text, encoding="utf-8")
    series = CLAIMED | {
        f"llm_gpu_up{{{CARD}}}": "0x60",
        f'llm_gpu_failure{{{CARD},reason="lost"}}': "1x60",
        f'llm_gpu_xid_last_timestamp_seconds{{{CARD},xid="79"}}': "180x60",
        f"llm_gpu_up{{{OTHER}}}": "0x60",
    }
    expected = {
        "LLMGPULost": [
            (
                "m: a GPU of r is lost",
                "GPU-a has not answered any source for 2m; reason: lost. Expected: an answer per scrape.",
            ),
            (
                "a GPU is lost",
                "GPU-b has not answered any source for 2m; reason: unknown. Expected: an answer per scrape.",
            ),
        ],
        "LLMGPUXid": [
            ("m: a GPU of r reported an Xid error", "GPU-a reported Xid 79 2m 0s ago. Expected: none."),
        ],
    }
    document = {
        "rule_files": ["hardware.yml", "gpu.yml"],
        "evaluation_interval": "10s",
        "group_eval_order": ["hardware", "alerts-gpu"],
        "tests": [
            {
                "interval": "10s",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "alert_rule_test": [
                    {
                        "eval_time": "5m",
                        "alertname": name,
                        "exp_alerts": [_expected(name, *texts) for texts in alerts],
                    }
                    for name, alerts in expected.items()
                ],
            }
        ],
    }
    (tmp_path / "test.yml").write_text(yaml.safe_dump(document), encoding="utf-8")
    done = subprocess.run(
        [promtools.path, "test", "rules", "test.yml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _expected(name: str, summary: str, description: str) -> dict[str, dict[str, str]]:
    of_model = {"model": "m", "replica": "r"} if summary.startswith("m: ") else {}
    gpu = description.partition(" ")[0]
    return {
        "exp_labels": {"severity": "ticket", "gpu": gpu, **of_model},
        "exp_annotations": {
            "summary": summary,
            "description": description,
            "runbook_url": f"http://127.0.0.1:9801/runbooks/{name}",
            "dashboard_url": f"http://127.0.0.1:3000/d/fleet{'?var-model=m' * bool(of_model)}",
        },
    }
