"""Whose page is where: found without configuration, or one sentence that names the engines we know."""

import asyncio
import json

import pytest

from exporter.failures import Reason, State
from tests.exporter.engines.built import NAMES, body, engine_of
from tests.exporter.sockets import Behaviour, answer, by_path, engine, look, raw, watching

NODE_EXPORTER = b'node_cpu_seconds_total{cpu="0",mode="idle"} 4211.7\nnode_load1 0.21\n'
LMDEPLOY = b"""\
lmdeploy:num_requests_running{engine="0",model_name="internlm3"} 3.0
lmdeploy:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="internlm3"} 40.0
lmdeploy:request_success_total{engine="0",finished_reason="ResponseType.FINISH",model_name="internlm3"} 39.0
"""
ITERATIONS = json.dumps([{"cpuMemUsage": 0, "iter": 11, "kvCacheStats": {"usedNumBlocks": 13}}]).encode()
KNOWN = "llama-server, SGLang, TensorRT-LLM, TGI, vLLM"
STRANGERS: dict[str, tuple[Behaviour, Reason, str]] = {
    "a node exporter": (answer(200, NODE_EXPORTER), Reason.INCOMPLETE, "no series begins as an engine's does"),
    "LMDeploy": (answer(200, LMDEPLOY), Reason.INCOMPLETE, "no series begins as an engine's does"),
    "Ollama, which has no metrics": (answer(404, b"404 page not found"), Reason.STATUS, "/metrics answered status 404"),
    "an empty page": (answer(200, b"# nothing\n"), Reason.INCOMPLETE, "the page is empty: no series at all"),
    "a web page": (answer(200, b"<!doctype html><p>Hello</p>"), Reason.PARSE, "expected a metric name"),
}


@pytest.mark.parametrize("name", STRANGERS)
def test_a_stranger_is_broken_with_a_sentence_that_names_the_engines_we_know(name: str) -> None:
    behaviour, reason, sentence = STRANGERS[name]
    found = look(behaviour, engine=None, model=None)
    assert (found.state, found.up) == (State.BROKEN, False)
    assert found.sentence.startswith(f"not a page of an engine that we know ({KNOWN}): ")
    assert sentence in found.sentence
    assert f'llm_replica_scrape_errors_total{{reason="{reason}"}} 1.0' in found.page


@pytest.mark.parametrize(("status", "state"), [(404, State.BROKEN), (405, State.BROKEN), (501, State.DISABLED)])
def test_a_stranger_without_a_page_is_told_how_engines_are_made_to_have_one(status: int, state: State) -> None:
    found = look(answer(status, b"{}"), engine=None, model=None)
    assert (found.state, found.up) == (state, False)
    remedy = "start llama-server with --metrics or start SGLang with --enable-metrics"
    assert found.sentence.rstrip("?").endswith(
        f"/metrics answered status {status}{';' if status < 500 else ':'} {remedy}"
    )


def test_json_at_the_usual_path_hints_at_the_engine_that_has_its_page_elsewhere() -> None:
    found = look(by_path(metrics=answer(200, ITERATIONS)), engine=None, model=None)
    assert found.state is State.BROKEN
    assert found.sentence.endswith(
        "; TensorRT-LLM has its page at /prometheus/metrics: "
        "start trtllm-serve with return_perf_metrics: true among its LLM arguments"
    )


def test_a_page_that_is_elsewhere_is_found_behind_json_at_the_usual_path() -> None:
    page = answer(200, body("trtllm-1.3").encode())
    found = look(by_path(metrics=answer(200, ITERATIONS), prometheus_metrics=page), engine=None, model=None)
    assert (found.state, found.engine, found.model) == (State.READY, "tensorrt-llm", "llama-3.3-70b")


def test_an_engine_known_to_have_its_page_elsewhere_is_never_asked_for_what_reading_takes_away() -> None:
    asked: list[bytes] = []

    async def behave(request: bytes, writer: asyncio.StreamWriter) -> None:
        asked.append(request.split(b" ")[1])
        await answer(200, body("trtllm-1.3").encode())(request, writer)

    assert look(behave, engine="tensorrt-llm").up
    assert b"/prometheus/metrics" in asked
    assert b"/metrics" not in asked


def test_a_model_called_undefined_gets_the_name_that_the_models_endpoint_tells() -> None:
    models = answer(200, b'{"data":[{"id":"llama-3.3-70b"}]}')
    page = answer(200, body("trtllm-1.3.0rc5").encode())
    found = look(by_path(prometheus_metrics=page, v1_models=models), engine="tensorrt-llm", model=None)
    assert found.model == "llama-3.3-70b"


def test_the_model_of_tgi_comes_from_its_info() -> None:
    info = answer(200, b'{"model_id":"bigscience/bloom","version":"3.3.7"}')
    found = look(by_path(metrics=answer(200, body("tgi-3.3.7").encode()), info=info), engine=None, model=None)
    assert (found.engine, found.model) == ("tgi", "bigscience/bloom")
    assert 'llm_replica_info{model="bigscience/bloom",version="3.3.7"} 1.0' in found.page


@pytest.mark.parametrize("name", NAMES)
def test_every_dialect_is_ready_without_configuration(name: str) -> None:
    known = engine_of(name)
    kind = "application/openmetrics-text" if "rust" in name else "text/plain"
    page = answer(200, body(name).encode(), headers=f"Content-Type: {kind}")
    found = look(by_path(**{known.path.strip("/").replace("/", "_"): page}), engine=None, model=None)
    state = State.SLEEPING if "sleeping" in name else State.READY
    assert (found.engine, found.state, found.sentence) == (known.name, state, "")


@pytest.mark.parametrize(
    ("name", "remedy"), {"sglang": "--enable-metrics", "tensorrt-llm": "return_perf_metrics"}.items()
)
def test_a_configured_engine_without_a_page_is_disabled_and_told_the_remedy(name: str, remedy: str) -> None:
    found = look(answer(404, b"{}"), engine=name)
    assert found.state is State.DISABLED
    assert remedy in found.sentence


@pytest.mark.parametrize(("name", "title"), {"tgi": "TGI", "tensorrt-llm": "TensorRT-LLM"}.items())
def test_an_empty_page_of_an_engine_that_fills_it_with_use_says_so(name: str, title: str) -> None:
    found = look(answer(200, b""), engine=name)
    assert (found.state, found.up) == (State.BROKEN, False)
    assert found.sentence == f"the page is empty: {title} writes nothing before its first request"


def test_a_replica_that_became_another_engine_is_learned_anew() -> None:
    lives = [
        ("sglang", {"metrics": body("sglang-0.5.23")}),
        ("tensorrt-llm", {"prometheus_metrics": body("trtllm-1.3")}),
        ("vllm", {"metrics": body("vllm-0.8.5")}),
    ]
    pages: dict[str, str] = {}

    async def behave(request: bytes, writer: asyncio.StreamWriter) -> None:
        await by_path(**{path: answer(200, page.encode()) for path, page in pages.items()})(request, writer)

    async def scenario() -> list[str]:
        engines = []
        async with engine(behave) as address, watching(f"http://{address}", engine=None, model=None) as service:
            for _, life in lives:
                pages.clear()
                pages.update(life)
                engines.append((await service.look(service.watches["r"], 5.0)).engine)
        return engines

    assert asyncio.run(scenario()) == [name for name, _ in lives]


def test_a_configured_engine_is_not_guessed_away() -> None:
    found = look(answer(200, body("vllm-0.8.5").encode()), engine="sglang")
    assert found.sentence == "a page of vLLM, not of SGLang: correct engine in fleet.yml"


def test_an_engine_that_is_gone_for_a_moment_stays_known() -> None:
    alive = True

    async def behave(request: bytes, writer: asyncio.StreamWriter) -> None:
        page = answer(200, body("sglang-0.5.23").encode())
        await (page if alive else raw(b""))(request, writer)

    async def scenario() -> tuple[str, State, str]:
        nonlocal alive
        async with engine(behave) as address, watching(f"http://{address}", engine=None, model=None) as service:
            watch = service.watches["r"]
            await service.look(watch, 5.0)
            alive = False
            gone = await service.look(watch, 5.0)
        return gone.engine, gone.state, gone.model

    assert asyncio.run(scenario()) == ("sglang", State.UNREACHABLE, "llama-3.1-8b")


def test_an_endpoint_that_an_engine_lacks_is_not_asked_at_every_scrape() -> None:
    asked: list[bytes] = []

    async def behave(request: bytes, writer: asyncio.StreamWriter) -> None:
        asked.append(request.split(b" ")[1])
        await by_path(metrics=answer(200, body("sglang-0.5.23").encode()))(request, writer)

    async def scenario() -> None:
        async with engine(behave) as address, watching(f"http://{address}", engine="sglang") as service:
            for _ in range(3):
                await service.look(service.watches["r"], 5.0)

    asyncio.run(scenario())
    assert {path: asked.count(path) for path in asked} == {b"/metrics": 3, b"/server_info": 1, b"/get_server_info": 1}
