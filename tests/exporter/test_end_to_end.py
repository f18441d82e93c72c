"""From fleet.yml into a real Prometheus: service discovery, probes, and the numbers of the engines' own pages."""

from pathlib import Path

import requests

from running.ports import free_port
from running.tools import Tool
from tests.exporter.captured import capture
from tests.exporter.pages import served
from tests.exporter.real_prometheus import Prometheus, prometheus
from tests.exporter.serving import exporter


def test_prometheus_finds_every_replica_and_stores_its_numbers(prometheus_binaries: Tool, tmp_path: Path) -> None:
    pages = {"/metrics": capture("vllm-0.32.0/under-load")}
    with served(pages) as vllm, served({"/metrics": capture("llama-server-b11434/under-load")}) as llama:
        fleet = tmp_path / "fleet.yml"
        replicas = (
            "replicas:\n"
            f'  - {{name: vllm-a, url: "http://{vllm}", engine: vllm}}\n'
            f'  - {{name: llama-a, url: "http://{llama}", engine: llama-server}}\n'
            f'  - {{name: gone, url: "http://127.0.0.1:{free_port()}"}}\n'
        )
        fleet.write_text(replicas)
        with exporter(fleet, tmp_path / "exporter.log", "--min-interval", "100ms") as (address, _):
            job = {"job_name": "replicas", "http_sd_configs": [{"url": f"{address}/targets", "refresh_interval": "1s"}]}
            with prometheus(prometheus_binaries, tmp_path / "prometheus", [job], "1s") as server:
                server.wait_until(lambda one: len(one.query("llm_replica_up")) == 3, "store all replicas")
                _check_numbers(server, llama)
                fleet.write_text(f'{replicas}  - {{name: added, url: "http://127.0.0.1:{free_port()}"}}\n')
                requests.post(f"{address}/-/reload", timeout=30)
                pages["/metrics"] = b"<html>"
                server.wait_until(
                    lambda one: _value(one, 'llm_replica_up{replica="vllm-a"}') == 0, "notice that a page broke"
                )
                assert server.query('llm_requests_running{replica="vllm-a"}') == [], "nothing old is kept"
                server.wait_until(lambda one: bool(one.query('llm_replica_up{replica="added"}')), "find a new replica")


def _check_numbers(server: Prometheus, llama: str) -> None:
    assert _value(server, 'llm_requests_waiting{replica="vllm-a",model="tiny",engine="vllm"}') == 32
    assert _value(server, 'llm_prompt_tokens_total{replica="llama-a",engine="llama-server"}') == 15916
    assert _value(server, 'llm_replica_up{replica="gone"}') == 0
    assert _value(server, f'llm_replica_state{{state="ready",instance="{llama}"}}') == 1
    at_threshold = 'llm_time_to_first_token_seconds_bucket{replica="vllm-a",le="2.0"}'
    assert 89 < _value(server, at_threshold) < 111
    assert _value(server, "sum(up)") == 3, "a replica that is down is not a scrape that failed"


def _value(server: Prometheus, promql: str) -> float:
    found = server.query(promql)
    assert len(found) == 1, f"{promql} answers {found}"
    return found[0][1]
