"""One replica over time: shared scrapes, budgets, keys, and who it is when it does not answer."""

import asyncio
import json
import logging
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from exporter.failures import State
from exporter.service import Service
from exporter.watch import Outcome
from tests.exporter.captured import CAPTURES, capture
from tests.exporter.sockets import PAGE, Behaviour, answer, by_path, engine, look, path_of, raw, watching

LLAMA = CAPTURES / "llama-server-b11434"


class Counting:
    """An engine that counts how often its page is asked for, and takes its time."""

    def __init__(self, *, seconds: float = 0.0) -> None:
        self.asked = 0
        self._seconds = seconds

    async def __call__(self, request: bytes, writer: asyncio.StreamWriter) -> None:
        self.asked += path_of(request) == "/metrics"
        await asyncio.sleep(self._seconds)
        await answer()(request, writer)


def llama(**more: Behaviour) -> Behaviour:
    return by_path(
        **{
            "metrics": answer(body=capture("llama-server-b11434/under-load")),
            "props": answer(body=(LLAMA / "props.json").read_bytes()),
            "slots": answer(body=(LLAMA / "slots-under-load.json").read_bytes()),
            **more,
        }
    )


def recording(behaviour: Behaviour, paths: list[str]) -> Behaviour:
    async def behave(request: bytes, writer: asyncio.StreamWriter) -> None:
        paths.append(path_of(request))
        await behaviour(request, writer)

    return behave


def test_readers_at_once_share_one_scrape() -> None:
    counting = Counting(seconds=0.1)

    async def scenario() -> list[Outcome]:
        async with engine(counting) as address, watching(f"http://{address}") as service:
            return await asyncio.gather(*(service.look(service.watches["r"], 30) for _ in range(5)))

    outcomes = asyncio.run(scenario())
    assert counting.asked == 1
    assert all(outcome is outcomes[0] for outcome in outcomes)
    assert outcomes[0].up


@pytest.mark.parametrize(("min_interval", "scrapes"), [(30.0, 1), (0.0, 2)])
def test_readers_within_the_minimum_interval_share_one_scrape(min_interval: float, scrapes: int) -> None:
    counting = Counting()

    async def scenario() -> None:
        async with engine(counting) as address, watching(f"http://{address}", min_interval=min_interval) as service:
            for _ in range(2):
                await service.look(service.watches["r"], 30)

    asyncio.run(scenario())
    assert counting.asked == scrapes


def test_a_reader_with_little_time_is_answered_while_the_scrape_goes_on_for_the_other() -> None:
    async def scenario() -> tuple[Outcome, Outcome, float]:
        async with engine(Counting(seconds=0.6)) as address, watching(f"http://{address}") as service:
            watch = service.watches["r"]
            patient = asyncio.create_task(service.look(watch, 30))
            await asyncio.sleep(0)
            start = time.monotonic()
            hasty = await service.look(watch, 0.2)
            return hasty, await patient, time.monotonic() - start

    hasty, patient, _ = asyncio.run(scenario())
    assert (hasty.up, patient.up) == (False, True)
    assert 'llm_replica_scrape_errors_total{reason="timeout"} 0.0' in hasty.page, "the scrape itself did not fail"


def test_a_replica_that_hangs_delays_no_other() -> None:
    async def scenario() -> tuple[bool, bool]:
        async with (
            engine(raw(b"", then_close=False)) as hanging,
            engine(answer()) as well,
            watching(f"http://{hanging}") as one,
            watching(f"http://{well}") as other,
        ):
            stuck = [asyncio.create_task(one.look(one.watches["r"], 60)) for _ in range(50)]
            await asyncio.sleep(0)
            is_up = (await other.look(other.watches["r"], 30)).up
            is_over = any(task.done() for task in stuck)
            for task in stuck:
                task.cancel()
            return is_up, is_over

    assert asyncio.run(scenario()) == (True, False)


def test_the_key_of_the_file_is_sent_and_read_again_when_it_changes(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("first\n")
    sent: list[bytes] = []

    async def guarded(request: bytes, writer: asyncio.StreamWriter) -> None:
        sent.extend(line for line in request.split(b"\r\n") if line.lower().startswith(b"authorization"))
        await answer()(request, writer)

    async def scenario() -> None:
        async with engine(guarded) as address, watching(f"http://{address}", api_key_file=key) as service:
            await service.look(service.watches["r"], 30)
            key.write_text("second, longer\n")
            await service.look(service.watches["r"], 30)

    asyncio.run(scenario())
    assert sent[0] == b"Authorization: Bearer first"
    assert sent[-1] == b"Authorization: Bearer second, longer"


@pytest.mark.parametrize("content", [b"", b"two\nlines", "schl\u00fcssel".encode(), b"\xff"])
def test_a_key_file_that_holds_no_key_is_denied_without_asking_the_engine(tmp_path: Path, content: bytes) -> None:
    key = tmp_path / "key"
    key.write_bytes(content)
    paths: list[str] = []
    outcome = look(recording(answer(), paths), api_key_file=key)
    assert (outcome.state, paths) == (State.DENIED, [])
    assert str(key) in outcome.sentence


def test_a_key_file_that_vanished_is_denied(tmp_path: Path) -> None:
    assert look(answer(), api_key_file=tmp_path / "gone").state is State.DENIED


def test_the_key_appears_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    key = tmp_path / "key"
    key.write_text("sk-verysecret")
    caplog.set_level(logging.DEBUG)
    for behaviour in (answer(), answer(401, b""), answer(301, b"", headers="Location: http://192.0.2.1/"), raw(b"")):
        outcome = look(behaviour, api_key_file=key)
        assert "verysecret" not in outcome.page + outcome.sentence + repr(outcome)
    assert "verysecret" not in caplog.text


def test_the_key_never_follows_a_redirect_to_another_host() -> None:
    elsewhere: list[str] = []

    async def scenario() -> Outcome:
        async with (
            engine(recording(answer(), elsewhere)) as other,
            engine(answer(307, b"", headers=f"Location: http://{other}/metrics")) as address,
            watching(f"http://{address}") as service,
        ):
            return await service.look(service.watches["r"], 30)

    assert not asyncio.run(scenario()).up
    assert elsewhere == []


def test_a_state_is_logged_when_it_changes_and_not_once_per_scrape(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def scenario() -> None:
        async with engine(answer(501, b"")) as address, watching(f"http://{address}", engine="llama-server") as service:
            for _ in range(5):
                await service.look(service.watches["r"], 30)

    asyncio.run(scenario())
    assert [record.message for record in caplog.records] == [
        "replica r is disabled: /metrics answered status 501: start llama-server with --metrics"
    ]


def test_errors_count_up_over_scrapes() -> None:
    async def scenario() -> str:
        async with engine(answer(503, b"")) as address, watching(f"http://{address}") as service:
            for _ in range(3):
                outcome = await service.look(service.watches["r"], 30)
            return outcome.page

    assert 'llm_replica_scrape_errors_total{reason="status"} 3.0' in asyncio.run(scenario())


def test_an_unusable_sample_is_left_out_and_counted_over_scrapes() -> None:
    page = PAGE.replace(
        b'vllm:num_preemptions_total{engine="0",model_name="tiny"} 0.0', b"vllm:num_preemptions_total N/A"
    )

    async def scenario() -> str:
        async with engine(answer(body=page)) as address, watching(f"http://{address}") as service:
            for _ in range(2):
                outcome = await service.look(service.watches["r"], 30)
            return outcome.page

    text = asyncio.run(scenario())
    assert "llm_replica_dropped_samples_total 2.0" in text
    assert "\nllm_preemptions_total" not in text
    assert 'llm_requests_running{model="m"} 8.0' in text


def test_an_engine_is_recognised_by_its_page() -> None:
    assert look(answer(), engine=None, model=None).engine == "vllm"
    assert look(llama(), engine=None, model=None).engine == "llama-server"


def test_a_model_is_asked_from_the_engine() -> None:
    assert look(answer(), model=None).model == "tiny"
    assert look(llama(), engine="llama-server", model=None).model == "tiny.gguf"
    nameless = by_path(
        metrics=answer(body=capture("llama-server-b11434/idle")), v1_models=answer(body=b'{"data":[{"id":"listed"}]}')
    )
    assert look(nameless, engine="llama-server", model=None).model == "listed"


def test_a_configured_model_is_used_whatever_the_engine_says() -> None:
    outcome = look(answer(), model="ours")
    assert (outcome.model, "tiny" in outcome.page) == ("ours", False)


def test_the_version_is_asked_from_vllm_and_kept_for_a_while() -> None:
    paths: list[str] = []
    behaviour = recording(by_path(metrics=answer(), version=answer(body=b'{"version":"0.32.0"}')), paths)

    async def scenario() -> Outcome:
        async with engine(behaviour) as address, watching(f"http://{address}") as service:
            for _ in range(3):
                outcome = await service.look(service.watches["r"], 30)
            return outcome

    assert 'llm_replica_info{model="m",version="0.32.0"} 1.0' in asyncio.run(scenario()).page
    assert paths.count("/version") == 1


def sleeping_llama(build: object) -> Behaviour:
    props = json.loads((LLAMA / "sleeping-props.json").read_text()) | {"build_info": build}
    return llama(
        metrics=answer(body=capture("llama-server-b11434/sleeping")), props=answer(body=json.dumps(props).encode())
    )


def test_a_sleeping_llama_server_whose_page_is_a_snapshot_is_not_asked_for_slots() -> None:
    paths: list[str] = []
    outcome = look(recording(sleeping_llama("b11434-7e4c0a9"), paths), engine="llama-server")
    assert (outcome.state, outcome.up) == (State.SLEEPING, True)
    assert "llm_generation_tokens_total" in outcome.page
    assert "/slots" not in paths, "the question alone would wake it"


@pytest.mark.parametrize("engine", ["llama-server", None])
@pytest.mark.parametrize("build", ["b11433-7e4c0a9", "b0-unknown", "b1-7e4c0a9", "b", 11434, None])
def test_a_sleeping_llama_server_that_a_question_could_wake_is_left_alone(build: object, engine: str | None) -> None:
    paths: list[str] = []
    outcome = look(recording(sleeping_llama(build), paths), engine=engine, model=None)
    assert (outcome.state, outcome.up, outcome.model, outcome.engine) == (
        *(State.SLEEPING, True),
        *("tiny.gguf", "llama-server"),
    )
    assert set(paths) == {"/props"}
    assert not re.search("^llm_(?!replica_)", outcome.page, re.MULTILINE), "nothing is known of what it counts"
    assert "llm_replica_unmapped_series" not in outcome.page


@pytest.mark.parametrize(
    "props", [answer(404, b""), answer(200, b"<html>"), answer(200, b"[1]"), raw(b"", then_close=False)]
)
def test_an_extra_endpoint_that_fails_costs_only_what_it_tells(props: Behaviour) -> None:
    outcome = look(llama(props=props), engine="llama-server", budget=1.0)
    assert outcome.up
    assert "llm_requests_running" in outcome.page
    assert "llm_request_slots" not in outcome.page


def test_llama_server_is_not_kept_connected_because_it_serves_few_at_once() -> None:
    heads: list[bytes] = []

    async def behave(request: bytes, writer: asyncio.StreamWriter) -> None:
        heads.append(request)
        await llama()(request, writer)

    look(behave, engine="llama-server")
    assert all(b"Connection: close" in head for head in heads)
    assert heads


async def _learn_then_lose(state_dir: Path, act: Callable[[Service, str], object]) -> Outcome:
    """Learn from a replica that answers, then look with a new service at its empty place."""
    async with engine(answer()) as address:
        async with watching(f"http://{address}", state_dir=state_dir, model=None, engine=None) as service:
            await service.look(service.watches["r"], 30)
        act(service, address)
    async with watching(f"http://{address}", state_dir=state_dir, model=None, engine=None) as service:
        return await service.look(service.watches["r"], 30)


def test_a_replica_that_is_gone_is_known_by_its_model_even_over_a_restart(tmp_path: Path) -> None:
    outcome = asyncio.run(_learn_then_lose(tmp_path, lambda *_: None))
    assert 'llm_replica_up{model="tiny"} 0.0' in outcome.page
    assert (outcome.model, outcome.engine) == ("tiny", "vllm")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"r": {"url": 3}}', '{"r": "x"}'])
def test_a_state_file_that_cannot_be_used_is_ignored(tmp_path: Path, text: str) -> None:
    outcome = asyncio.run(_learn_then_lose(tmp_path, lambda *_: (tmp_path / "identities.json").write_text(text)))
    assert "llm_replica_up 0.0" in outcome.page


def test_what_was_learned_at_another_address_is_not_believed(tmp_path: Path) -> None:
    stored = {"r": {"url": "http://192.0.2.7:8000", "models": ["other"], "engine": "vllm"}}
    outcome = asyncio.run(
        _learn_then_lose(tmp_path, lambda *_: (tmp_path / "identities.json").write_text(json.dumps(stored)))
    )
    assert outcome.model == ""


def test_a_state_directory_that_cannot_be_written_costs_only_the_memory(tmp_path: Path) -> None:
    async def scenario() -> Outcome:
        async with (
            engine(answer()) as address,
            watching(f"http://{address}", state_dir=tmp_path / "missing") as service,
        ):
            return await service.look(service.watches["r"], 30)

    assert asyncio.run(scenario()).up
