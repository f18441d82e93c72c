import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from exporter import catalogue
from exporter.catalogue import Metric
from running import ports
from tests.real_engine import client, engine
from tests.real_engine.engine import Engine
from tests.real_engine.watch import Exporter, start_exporter, until

KEY = "sk-only-for-this-test"


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(f"{KEY}\n")
    return path


@pytest.fixture
def guarded(model: Path, tmp_path: Path, key_file: Path) -> Iterator[Engine]:
    llama = engine.start(model, tmp_path / "llama.log", "--metrics", "--slots", "--api-key-file", str(key_file))
    with llama.process:
        llama.wait_ready()
        yield llama


def test_a_replica_is_loading_until_it_is_ready(slow_model: Path, tmp_path: Path) -> None:
    port = ports.free_port()
    exporter = start_exporter(
        tmp_path, [{"name": "llama", "url": f"http://127.0.0.1:{port}", "engine": "llama-server"}]
    )
    seen = [""]
    with exporter.process:
        llama = engine.start(slow_model, tmp_path / "llama.log", "--metrics", "--slots", port=port)
        with llama.process:

            def ready() -> bool:
                state = exporter.state("llama")
                if state != seen[-1]:
                    seen.append(state)
                return state == "ready"

            until(ready, f"the replica is ready; states so far: {seen}")
    assert [state for state in seen[1:] if state != "unreachable"] == ["loading", "ready"]


def test_a_replica_that_wants_a_key_is_ready_with_the_key_file_and_denied_without(
    guarded: Engine, key_file: Path, tmp_path: Path
) -> None:
    replicas = [
        {"name": "with-key", "url": guarded.url, "api_key_file": str(key_file)},
        {"name": "without-key", "url": guarded.url.replace("127.0.0.1", "localhost"), "engine": "llama-server"},
    ]
    exporter = start_exporter(tmp_path, replicas)
    with exporter.process:
        assert exporter.state("with-key") == "ready"
        assert exporter.state("without-key") == "denied"
        client.stream_all(guarded.url, ["the fox"], tokens=11, key=KEY)
        # The engine books tokens when it frees the slot, which may be after the client has the last of them.
        until(lambda: counted(exporter, "with-key", catalogue.GENERATION_TOKENS) == [11], "11 tokens are counted")
        assert counted(exporter, "without-key", catalogue.GENERATION_TOKENS) == []
        assert KEY not in exporter.page("with-key") + exporter.page("without-key") + exporter.process.log_tail(1000)


def test_a_replica_without_its_metrics_flag_is_disabled(model: Path, tmp_path: Path) -> None:
    assert state_of(model, tmp_path, "--slots") == "disabled"


def test_a_killed_replica_is_unreachable_and_repeats_none_of_its_counts(model: Path, tmp_path: Path) -> None:
    llama = engine.start(model, tmp_path / "llama.log", "--metrics", "--slots")
    with llama.process:
        llama.wait_ready()
        exporter = start_exporter(tmp_path, [{"name": "llama", "url": llama.url}])
        with exporter.process:
            assert counted(exporter, "llama", catalogue.REPLICA_UP) == [1]
            llama.process.signal(signal.SIGKILL)
            until(lambda: exporter.state("llama") == "unreachable", "the killed replica is unreachable")
            assert counted(exporter, "llama", catalogue.REPLICA_UP) == [0]
            assert counted(exporter, "llama", catalogue.GENERATION_TOKENS) == []


@pytest.mark.parametrize("fields", [{}, {"engine": "llama-server"}], ids=["learned", "configured"])
def test_a_replica_that_fell_asleep_is_sleeping_and_sleeps_on(
    model: Path, tmp_path: Path, fields: dict[str, str]
) -> None:
    llama = engine.start(model, tmp_path / "llama.log", "--metrics", "--slots", "--sleep-idle-seconds", "1")
    with llama.process:
        llama.wait_ready()
        until(llama.is_sleeping, "the idle server sleeps")
        exporter = start_exporter(tmp_path, [{"name": "llama", "url": llama.url, **fields}])
        with exporter.process:
            for _ in range(5):
                page = exporter.page("llama")
                assert 'state="sleeping"} 1' in page
                assert counted(exporter, "llama", catalogue.REPLICA_UP) == [1]
                assert llama.is_sleeping(), "a scrape woke it up"
            client.stream_all(llama.url, ["the fox"], tokens=11)
            until(lambda: exporter.state("llama") == "ready", "it is scraped again, since a client woke it up")


def state_of(model: Path, directory: Path, *flags: str) -> str:
    llama = engine.start(model, directory / "llama.log", *flags)
    with llama.process:
        llama.wait_ready()
        exporter = start_exporter(directory, [{"name": "llama", "url": llama.url, "engine": "llama-server"}])
        with exporter.process:
            return exporter.state("llama")


def counted(exporter: Exporter, replica: str, metric: Metric) -> list[float]:
    lines = exporter.page(replica).splitlines()
    return [float(line.split()[-1]) for line in lines if line.startswith((f"{metric.name} ", f"{metric.name}{{"))]
