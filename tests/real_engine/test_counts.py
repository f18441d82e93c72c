from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from exporter import catalogue
from exporter.catalogue import Metric
from running.tools import Tool
from tests.real_engine import client, engine
from tests.real_engine.client import Stream
from tests.real_engine.engine import Engine
from tests.real_engine.watch import Prometheus, start_exporter, until, watch

SLOTS = 4
TOKENS = 701
# Eight streams for four slots: four wait. The second half repeats the first, so that its prompts come from the cache.
PROMPTS = [f"the quick brown fox reads page {number}" for number in range(SLOTS)] * 2


@dataclass(frozen=True, kw_only=True)
class Run:
    engine: Engine
    prometheus: Prometheus
    streams: list[Stream]

    def scraped(self, metric: Metric) -> float | None:
        return self.prometheus.value(f'sum({metric.name}{{replica="llama"}})')

    def highest(self, metric: Metric) -> float | None:
        return self.prometheus.value(f'max(max_over_time({metric.name}{{replica="llama"}}[5m]))')


@pytest.fixture(scope="module")
def run(prometheus_binaries: Tool, model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    directory = tmp_path_factory.mktemp("run")
    llama = engine.start(model, directory / "llama.log", "--metrics", "--slots")
    with llama.process:
        llama.wait_ready()
        exporter = start_exporter(directory, [{"name": "llama", "url": llama.url, "model": "tiny"}])
        with exporter.process:
            prometheus = watch(exporter, prometheus_binaries, directory / "prometheus")
            with prometheus.process:
                found = Run(engine=llama, prometheus=prometheus, streams=[])
                until(lambda: found.scraped(catalogue.REPLICA_UP) == 1, "Prometheus sees the replica")
                found.streams.extend(client.stream_all(llama.url, PROMPTS, tokens=TOKENS))
                generated = sum(stream.generated for stream in found.streams)
                until(lambda: found.scraped(catalogue.GENERATION_TOKENS) == generated, f"it has {generated} tokens")
                yield found


def test_generated_tokens_are_those_of_the_engine_and_those_of_the_client(run: Run) -> None:
    scraped = run.scraped(catalogue.GENERATION_TOKENS)
    assert scraped == run.engine.counts()["tokens_predicted_total"]
    assert scraped == sum(stream.chunks for stream in run.streams)
    assert scraped == sum(stream.generated for stream in run.streams)
    assert scraped == TOKENS * len(PROMPTS)


def test_prompt_tokens_include_the_cached_ones_that_llama_server_counts_apart(run: Run) -> None:
    page = run.engine.counts()
    scraped = run.scraped(catalogue.PROMPT_TOKENS)
    assert scraped == page["prompt_tokens_total"] + page["prompt_tokens_cached_total"]
    assert scraped == sum(stream.prompt for stream in run.streams)


def test_cached_prompt_tokens_are_those_the_client_was_told(run: Run) -> None:
    scraped = run.scraped(catalogue.PROMPT_TOKENS_CACHED)
    assert scraped == run.engine.counts()["prompt_tokens_cached_total"]
    assert scraped == sum(stream.cached for stream in run.streams)
    assert scraped, "the second half of the prompts was in the cache"


def test_seconds_of_prefill_and_decode_are_those_of_the_engine(run: Run) -> None:
    page = run.engine.counts()
    assert run.scraped(catalogue.PREFILL_SECONDS) == page["prompt_seconds_total"]
    assert run.scraped(catalogue.DECODE_SECONDS) == page["tokens_predicted_seconds_total"]


def test_open_streams_were_running_or_waiting_and_are_no_more(run: Run) -> None:
    assert run.highest(catalogue.REQUESTS_RUNNING) == SLOTS
    assert run.highest(catalogue.REQUESTS_WAITING) == len(PROMPTS) - SLOTS
    assert run.scraped(catalogue.REQUESTS_RUNNING) == 0
    assert run.scraped(catalogue.REQUESTS_WAITING) == 0


def test_what_llama_server_cannot_tell_is_absent_not_zero(run: Run) -> None:
    for metric in (catalogue.TTFT, catalogue.ITL, catalogue.REQUEST_DURATION):
        assert run.prometheus.value(f"sum({metric.count})") is None
    assert run.scraped(catalogue.PREEMPTIONS) is None
