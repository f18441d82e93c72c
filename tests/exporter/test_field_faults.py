"""Faults that people met in the field, each through the whole exporter, from a real socket to the page."""

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from exporter.expose import CONTENT_TYPE
from exporter.failures import State
from exporter.fleet import Fleet, Replica
from exporter.parse import Parser
from exporter.service import Options, Service
from exporter.watch import Outcome
from tests.exporter.captured import CAPTURES, capture
from tests.exporter.sockets import PAGE, Behaviour, answer, by_path, engine, look, path_of, raw, watching

LLAMA = capture("llama-server-b11434/idle")
PROPS = json.loads((CAPTURES / "llama-server-b11434/props.json").read_text())


def llama(metrics: Behaviour, **props: object) -> Behaviour:
    return by_path(metrics=metrics, props=answer(body=json.dumps(PROPS | props).encode()))


def looks(behaviour: Behaviour, times: int, **fields: Any) -> list[Outcome]:  # noqa: ANN401 - fields of a replica
    async def scenario() -> list[Outcome]:
        async with engine(behaviour) as address, watching(f"http://{address}", **fields) as service:
            return [await service.look(service.watches["r"], 30) for _ in range(times)]

    return asyncio.run(scenario())


def in_turn(behaviours: Sequence[Behaviour]) -> Behaviour:
    """Behave in one way after the other, once for each question for the page; the last way stays."""
    asked = iter(behaviours)
    now = [next(asked)]

    async def behave(request: bytes, writer: asyncio.StreamWriter) -> None:
        await now[0](request, writer)
        if path_of(request) == "/metrics":
            now[0] = next(asked, now[0])

    return behave


def value(page: str, series: str) -> float:
    [found] = [line for line in page.splitlines() if line.startswith(f"{series} ")]
    return float(found.removeprefix(series))


@pytest.mark.parametrize("nan", [b"-nan", b"nan", b"NaN", b"-NAN", b"-nan(ind)"])
def test_an_average_of_nothing_costs_itself_and_not_the_page_of_an_idle_server(nan: bytes) -> None:
    page = re.sub(rb"(?m)^(llamacpp:n_busy_slots_per_decode) .*$", rb"\1 " + nan, LLAMA)
    assert page != LLAMA
    outcome = look(llama(answer(body=page)), engine="llama-server")
    assert (outcome.up, outcome.running) == (True, 0)
    assert "nan" not in outcome.page.lower()


@pytest.mark.parametrize("name", ['a}b,{c="d" # e', r"C:\models\q4.gguf", "模型-é😀", "a,b", "org/model-7b:fp8", "\\n"])
def test_a_models_name_arrives_as_the_engine_wrote_it(name: str) -> None:
    written = name.replace("\\", "\\\\").replace('"', '\\"')
    outcome = look(answer(body=PAGE.replace(b'model_name="tiny"', f'model_name="{written}"'.encode())), model=None)
    page = Parser().parse(outcome.page.encode())
    assert {one.labels["model"] for one in page.series if "model" in one.labels} == {name}


def test_a_label_that_is_no_utf8_costs_its_series_and_no_other() -> None:
    odd = b'vllm:lora_requests_info{running_lora_adapters="caf\xe9"} 1\n'
    outcome = look(answer(body=PAGE + odd))
    assert (outcome.up, outcome.running) == (True, 8)
    assert value(outcome.page, "llm_replica_dropped_samples_total") == 1


def test_a_raw_line_break_in_a_models_name_breaks_no_line_of_ours() -> None:
    outcome = look(answer(body=PAGE.replace(b'model_name="tiny"', b'model_name="line one\nline two"')), model=None)
    assert outcome.up
    assert outcome.model.startswith("line one\ufffdline two")
    assert all(line.startswith(("#", "llm_")) for line in outcome.page.splitlines())


def test_the_text_format_is_asked_for_uncompressed_and_nothing_else() -> None:
    heads: list[str] = []

    async def listen(request: bytes, writer: asyncio.StreamWriter) -> None:
        heads.append(request.decode().lower())
        await answer()(request, writer)

    assert look(listen).up
    for head in heads:
        lines = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
        assert lines["accept"].startswith("text/plain;version=0.0.4")
        assert "openmetrics" not in lines["accept"]
        assert lines["accept-encoding"] == "identity"
        assert re.fullmatch(r"127\.0\.0\.1:[0-9]+", lines["host"])
        assert "cookie" not in lines
        assert "authorization" not in lines
    assert CONTENT_TYPE.startswith("text/plain; version=0.0.4")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("location", ["/metrics/", "/metrics/?x=%2F", "metrics/", "//{address}/metrics/"])
def test_a_page_that_moved_a_little_is_found(status: int, location: str) -> None:
    asked: list[str] = []

    async def scenario() -> bool:
        async def move(request: bytes, writer: asyncio.StreamWriter) -> None:
            asked.append(path_of(request))
            moved = answer(status, b"", headers=f"Location: {location.format(address=address)}")
            await (moved if asked[-1] == "/metrics" else answer())(request, writer)

        async with engine(move) as address, watching(f"http://{address}") as service:
            return (await service.look(service.watches["r"], 30)).up

    assert asyncio.run(scenario())
    assert any(path.startswith("/metrics/") for path in asked)


def test_a_redirect_to_another_port_is_another_server() -> None:
    outcome = look(answer(307, b"", headers="Location: http://127.0.0.1:1/metrics"))
    assert (outcome.up, outcome.state) == (False, State.BROKEN)
    assert "give that address as url if it is the engine's" in outcome.sentence


def test_a_server_that_loads_then_wants_a_key_then_answers_goes_through_these_states() -> None:
    steps = [answer(503, b'{"error":{"code":503}}'), answer(401, b"{}"), answer(body=LLAMA)]
    found = looks(in_turn([llama(each) for each in steps]), 3, engine="llama-server")
    assert [one.state for one in found] == [State.LOADING, State.DENIED, State.READY]


@pytest.mark.parametrize("status", [401, 403, 500, 503])
def test_a_refusal_is_asked_once_in_a_scrape(status: int) -> None:
    asked: list[str] = []

    async def refuse(request: bytes, writer: asyncio.StreamWriter) -> None:
        asked.append(path_of(request))
        await answer(status, b"")(request, writer)

    assert not look(refuse).up
    assert asked.count("/metrics") == 1


def test_another_model_on_the_same_port_continues_no_series_of_the_first() -> None:
    first, second = (
        llama(answer(body=re.sub(rb"(tokens_predicted_total) \d+", rb"\1 " + count, LLAMA)), model_alias=name)
        for name, count in (("one", b"900"), ("other", b"10"))
    )
    before, after = looks(in_turn([first, second]), 2, engine="llama-server", model=None)
    assert value(before.page, 'llm_generation_tokens_total{model="one"}') == 900
    assert value(after.page, 'llm_generation_tokens_total{model="other"}') == 10
    assert 'model="one"' not in after.page


def test_a_counter_that_falls_is_written_as_it_is() -> None:
    def counted(tokens: bytes) -> Behaviour:
        return answer(body=re.sub(rb"(?m)^(vllm:generation_tokens_total\{.*) .*$", rb"\1 " + tokens, PAGE))

    found = looks(in_turn([counted(b"10"), counted(b"7"), counted(b"1.73456e+06")]), 3)
    assert [value(one.page, 'llm_generation_tokens_total{model="m"}') for one in found] == [10, 7, 1734560]


def test_fifty_that_hang_are_answered_together_and_not_one_after_the_other() -> None:
    async def scenario() -> list[Outcome]:
        async with engine(raw(b"", then_close=False)) as address:
            replicas = tuple(Replica(name=f"r{at}", url=f"http://{address}", engine="vllm") for at in range(50))
            service = Service(Options(fleet=Path("fleet.yml")), Fleet(replicas=replicas))
            loop = asyncio.get_running_loop()
            started = loop.time()
            found = await asyncio.gather(*(service.look(watch, 1) for watch in service.watches.values()))
            assert loop.time() - started < 25, "one after the other they take fifty"
            await service.close()
            return found

    found = asyncio.run(scenario())
    assert {(one.up, one.state) for one in found} == {(False, State.UNREACHABLE)}
    assert all('llm_replica_scrape_errors_total{reason="timeout"} 1.0' in one.page for one in found)


def test_nothing_stays_open_after_hundreds_of_scrapes_of_an_engine_that_hangs_up_resets_and_refuses() -> None:
    behaviours = (
        answer(),
        answer(headers="Connection: close"),
        raw(b""),
        answer(501, b"{}" * 9000),
        answer(503, b""),
        answer(200, b"<html>" * 9000),
        answer(200, PAGE, headers="Content-Encoding: gzip"),
        answer(301, b"x" * 9000, headers="Location: /elsewhere"),
    )

    def open_files() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    async def scenario() -> tuple[int, int]:
        asked = 0

        async def behave(request: bytes, writer: asyncio.StreamWriter) -> None:
            nonlocal asked
            asked += 1
            await behaviours[asked % len(behaviours)](request, writer)

        async with engine(behave) as address, watching(f"http://{address}") as service:
            for _ in range(2 * len(behaviours)):
                await service.look(service.watches["r"], 30)
            before = open_files()
            for _ in range(300):
                await service.look(service.watches["r"], 30)
            async with asyncio.timeout(30):
                while open_files() > before + 5:  # noqa: ASYNC110 - no event tells it
                    await asyncio.sleep(0.01)
            return before, open_files()

    before, after = asyncio.run(scenario())
    assert after <= before + 5
