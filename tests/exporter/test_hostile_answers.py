"""Answers that no engine should give: each costs its own series at most, and all readers get a page and a sentence."""

import asyncio
import gzip
import json
import logging
import zlib
from typing import Any

import pytest

from exporter.failures import State
from exporter.parse import Parser
from exporter.watch import Outcome
from tests.exporter.captured import CAPTURES, capture
from tests.exporter.sockets import PAGE, Behaviour, answer, by_path, engine, look, raw, watching

LLAMA = CAPTURES / "llama-server-b11434"
GZIP = "Content-Encoding: gzip"
HALF = PAGE.index(b"# HELP vllm:e2e_request_latency_seconds ")


def llama(*, slots: object = None, models: object = None, **props: object) -> Behaviour:
    told = json.loads((LLAMA / "props.json").read_text()) | props
    listed = {"models": answer(body=_text(models))} if models is not None else {}
    metrics = answer(400, b"") if models is not None else answer(body=capture("llama-server-b11434/under-load"))
    return by_path(metrics=metrics, props=answer(body=_text(told)), slots=answer(body=_text(slots)), **listed)


def _text(value: object) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def listing(name: str, status: object) -> dict[str, Any]:
    return {"data": [{"id": name, "status": {"value": status}}]}


@pytest.mark.parametrize(
    "behaviour",
    [
        llama(total_slots=10**400),
        llama(slots=[{"n_ctx": 10**400}]),
        llama(slots=b'[{"n_ctx": ' + b"9" * 5000 + b"}]"),
        llama(slots=b'[{"n_ctx": 1e999}]'),
        llama(slots=b"[" * 100_000),
        llama(slots=[{"n_ctx": True}]),
    ],
)
def test_slots_that_cannot_be_counted_cost_what_they_would_tell(behaviour: Behaviour) -> None:
    outcome = look(behaviour, engine="llama-server")
    assert outcome.up
    assert "llm_kv_cache_capacity_tokens" not in outcome.page
    assert "llm_kv_cache_usage_ratio" not in outcome.page


@pytest.mark.parametrize("told", [{}, {"n_prompt_tokens": 10**400}, {"n_prompt_tokens": None}])
def test_a_busy_slot_that_does_not_tell_its_tokens_is_not_an_empty_one(told: dict[str, object]) -> None:
    outcome = look(llama(slots=[{"n_ctx": 100, "is_processing": True, **told}]), engine="llama-server")
    assert 'llm_kv_cache_capacity_tokens{model="m"} 100.0' in outcome.page
    assert "llm_kv_cache_usage_ratio" not in outcome.page


@pytest.mark.parametrize("blocks", [b"9" * 400, b"9" * 5000, "٣".encode(), b"-1", b"1e3"])
def test_a_cache_size_that_is_no_count_is_absent(blocks: bytes) -> None:
    page = PAGE.replace(b"kv_cache_size_tokens", b"other").replace(b'num_gpu_blocks="', b'num_gpu_blocks="' + blocks)
    outcome = look(answer(body=page))
    assert outcome.up
    assert "llm_kv_cache_capacity_tokens" not in outcome.page


@pytest.mark.parametrize("status", [["loaded"], {"loaded": 1}, "exploded", None, 7])
def test_a_router_that_says_what_we_do_not_know_of_a_model_has_that_model_broken(status: object) -> None:
    outcome = look(llama(role="router", models=listing("a", status)), engine="llama-server", model=None)
    assert (outcome.state, outcome.up) == (State.BROKEN, False)
    assert outcome.sentence == "a: /models says that it failed, or what we do not know"


@pytest.mark.parametrize("name", ["half \\ud800 a pair", "two\\nlines", "a&model=b#c", "../x", "%00"])
def test_a_router_may_name_its_models_as_it_likes(name: str) -> None:
    listed = b'{"data": [{"id": "%s", "status": {"value": "loaded"}}]}' % name.encode()
    outcome = look(llama(role="router", models=listed), engine="llama-server", model=None)
    assert outcome.sentence.isprintable()
    assert outcome.page.count("\nllm_replica_up{") == 1


@pytest.mark.parametrize("value", [b"NaN", b"+Inf", b"-Inf"])
def test_a_number_that_is_none_is_left_out_and_counted(value: bytes) -> None:
    page = PAGE.replace(
        b'vllm:num_requests_running{engine="0",model_name="tiny"} 8.0',
        b'vllm:num_requests_running{engine="0",model_name="tiny"} ' + value,
    )
    outcome = look(answer(body=page))
    assert (outcome.up, outcome.running, outcome.waiting) == (True, None, 32)
    assert "llm_requests_running{" not in outcome.page
    assert "\nllm_replica_dropped_samples_total 1.0\n" in outcome.page


@pytest.mark.parametrize("suffix", [b"_sum", b"_count"])
@pytest.mark.parametrize("value", [b"-2", b"NaN", b"+Inf"])
def test_a_histogram_with_totals_that_cannot_be_is_left_out_whole(suffix: bytes, value: bytes) -> None:
    start = b'vllm:time_to_first_token_seconds%s{engine="0",model_name="tiny"} ' % suffix
    before, _, after = PAGE.partition(start)
    outcome = look(answer(body=before + start + value + b"\n" + after.partition(b"\n")[2]))
    assert outcome.up
    assert "llm_time_to_first_token_seconds_" not in outcome.page
    assert "llm_inter_token_latency_seconds_count" in outcome.page


def test_gzip_in_several_members_is_one_body() -> None:
    body = gzip.compress(PAGE[:HALF]) + gzip.compress(PAGE[HALF:])
    assert look(answer(body=body, headers=GZIP)).page.count("\n") == look(answer()).page.count("\n")


@pytest.mark.parametrize("more", [b"garbage", b"\x1f\x8b", gzip.compress(PAGE)[:50]])
def test_what_follows_a_gzip_body_has_to_be_gzip_and_whole(more: bytes) -> None:
    outcome = look(answer(body=gzip.compress(PAGE) + more, headers=GZIP))
    assert (outcome.up, outcome.state) == (False, State.BROKEN)


def test_deflate_without_its_header_is_said_to_be_something_else() -> None:
    assert not look(answer(body=zlib.compress(PAGE)[2:-4], headers="Content-Encoding: deflate")).up


def test_labels_in_latin_1_do_not_look_like_metrics_that_are_switched_off() -> None:
    outcome = look(answer(body=PAGE.replace(b'"tiny"', b'"t\xefny"')))
    assert outcome.state is State.BROKEN
    assert outcome.sentence == (
        "a page without the series that every version provides, 373 samples left out since a value is no number or a"
        " label no UTF-8: is this vLLM?"
    )


@pytest.mark.parametrize("location", ["/a%0aFAKE%20LINE", f"/{'a' * 7000}", "http://user:s3cr3t@other.example/x"])
def test_a_sentence_is_one_short_line_and_no_secret_whatever_the_engine_says(location: str) -> None:
    sentence = look(answer(301, b"", headers=f"Location: {location}")).sentence
    assert sentence.isprintable()
    assert len(sentence) <= 600
    assert "s3cr3t" not in sentence


def test_what_nobody_foresaw_is_a_broken_page_and_one_report(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def explode(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Parser, "parse", explode)
    caplog.set_level(logging.ERROR)

    async def scenario() -> list[Outcome]:
        async with engine(answer()) as address, watching(f"http://{address}") as service:
            return [await service.look(service.watches["r"], 30) for _ in range(3)]

    outcomes = asyncio.run(scenario())
    assert {(one.up, one.state) for one in outcomes} == {(False, State.BROKEN)}
    assert outcomes[-1].sentence == "reading the page failed in an unforeseen way (ZeroDivisionError): see the log"
    assert 'llm_replica_scrape_errors_total{reason="parse"} 3.0' in outcomes[-1].page
    assert len(caplog.records) == 1


@pytest.mark.parametrize("order", ["one after the other", "at once"])
def test_an_impatient_reader_costs_no_other_its_page(order: str) -> None:
    async def slow(request: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.2)
        await answer()(request, writer)

    async def scenario() -> list[Outcome]:
        async with engine(slow) as address, watching(f"http://{address}", min_interval=60.0) as service:
            looks = [service.look(service.watches["r"], budget) for budget in (0.01, 5.0, 5.0)]
            return [await one for one in looks] if order != "at once" else await asyncio.gather(*looks)

    assert [one.up for one in asyncio.run(scenario())] == [False, True, True]


def test_readers_as_patient_as_the_first_share_its_failure() -> None:
    asked = 0

    async def silent(_request: bytes, _writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await asyncio.Event().wait()

    async def scenario() -> list[Outcome]:
        async with engine(silent) as address, watching(f"http://{address}", min_interval=60.0, engine="tgi") as service:
            return await asyncio.gather(*(service.look(service.watches["r"], 0.3) for _ in range(5)))

    assert [one.state for one in asyncio.run(scenario())] == [State.UNREACHABLE] * 5
    assert asked == 2, "the page, and what the engine tells beside it"


@pytest.mark.parametrize(
    "status", [b"HTTP/1.1\r\n\r\n", b"HTTP/1.1 2000 X\r\n\r\n", b"\0" * 100, b"ICY 200 OK\r\n\r\n"]
)
def test_an_answer_that_is_not_http_has_a_sentence(status: bytes) -> None:
    assert look(raw(status)).sentence.startswith("/metrics was not answered in HTTP")
