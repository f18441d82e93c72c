"""What the measurements stand on: pages that grow as an engine's do, a reader that counts pages only, honest tables."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.rig.client import NoPageError, probe_at_rate, probe_for, probe_times
from bench.rig.pages import CAPTURED, growing
from bench.rig.process import use
from bench.rig.subjects import exporter, upstream
from bench.rig.table import table
from exporter.parse import Parser
from running.ports import free_port


def test_pages_grow_and_hold_the_same_series() -> None:
    parser = Parser()
    first, *_, last = [parser.parse(page) for page in growing(CAPTURED.read_text(), 5)]
    assert first.series == last.series
    grown = {
        series.name: (before, after)
        for series, before, after in zip(*(first.series, first.values), last.values, strict=True)
    }
    assert grown["vllm:generation_tokens_total"][1] == grown["vllm:generation_tokens_total"][0] + 4
    assert grown["vllm:num_requests_running"][1] == grown["vllm:num_requests_running"][0]


def test_every_probe_is_a_scrape_of_its_own(tmp_path: Path) -> None:
    with upstream(tmp_path, 3) as replicas, exporter(tmp_path, replicas.ports) as subject:
        asyncio.run(probe_times(subject.port, subject.names, times=30, connections=2))
        probes = 30 + asyncio.run(probe_at_rate(subject.port, subject.names, rate=20, seconds=0.5))
        probes += asyncio.run(probe_for(subject.port, subject.names, seconds=0.2, connections=2))
        assert replicas.served() == probes


def test_an_answer_that_is_no_page_of_a_replica_that_is_up_ends_the_measurement(tmp_path: Path) -> None:
    with exporter(tmp_path, [free_port()]) as subject:
        with pytest.raises(NoPageError, match="replica-0"):
            asyncio.run(probe_times(subject.port, subject.names, times=1, connections=1))
        with pytest.raises(NoPageError, match="404"):
            asyncio.run(probe_times(subject.port, ["nobody"], times=1, connections=1))


def test_what_a_process_uses_is_read_from_proc() -> None:
    mine = use(os.getpid())
    assert mine.cpu > 0
    assert 1 < mine.mebibytes < 10_000
    assert mine.files > 2
    assert mine.threads >= 1


def test_a_table_lines_figures_up_on_the_right() -> None:
    assert table("T", ("what", "ms"), [("a", "1.00"), ("long", "10.00")]).splitlines() == [
        "T", "what     ms", "----  -----", "a      1.00", "long  10.00",
    ]  # fmt: skip


@pytest.mark.parametrize("module", ["bench.probe", "bench.scale", "bench.series"])
def test_a_benchmark_says_what_it_measures(module: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=True)
    assert module in done.stdout
