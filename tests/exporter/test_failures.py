"""Whatever an engine does on its socket becomes data: a reason, a state, and never a number from somewhere else."""

import asyncio
import gzip
import socket
import time
import zlib

import pytest

from exporter import catalogue
from exporter.failures import Reason, State
from running.ports import free_port
from tests.exporter.captured import CAPTURES, capture
from tests.exporter.serving import BUSY
from tests.exporter.sockets import PAGE, Behaviour, answer, by_path, engine, look, raw, watching

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
QUICK = 0.5


async def _reset(_request: bytes, writer: asyncio.StreamWriter) -> None:
    raw_socket: socket.socket = writer.get_extra_info("socket")
    raw_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    writer.close()


async def _drip(_request: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + f"Content-Length: {len(PAGE)}\r\n\r\n".encode())
    for byte in PAGE:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.02)


def _endless(size: int) -> Behaviour:
    async def behave(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + f"Content-Length: {size}\r\n\r\n".encode())
        for _ in range(size // len(PAGE)):
            writer.write(PAGE)
            await writer.drain()

    return behave


def _without_end(start: bytes, more: bytes) -> Behaviour:
    async def behave(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while True:
            writer.write(more * (2**16 // len(more)))
            await writer.drain()

    return behave


def _bomb() -> bytes:
    press = zlib.compressobj(wbits=31)
    return b"".join(press.compress(b"a 1\n" * 2**18) for _ in range(64)) + press.flush()


def _redirect(location: str) -> Behaviour:
    return answer(301, b"", headers=f"Location: {location}")


GZIP = "Content-Type: text/plain\r\nContent-Encoding: gzip"
FAILURES: dict[str, tuple[Behaviour, Reason, State]] = {
    "closes the connection without an answer": (raw(b""), Reason.RESET, State.UNREACHABLE),
    "resets the connection": (_reset, Reason.RESET, State.UNREACHABLE),
    "accepts and never answers": (raw(b"", then_close=False), Reason.TIMEOUT, State.UNREACHABLE),
    "stops after the head": (
        raw(HEAD + b"Content-Length: 9\r\n\r\n", then_close=False),
        Reason.TIMEOUT,
        State.UNREACHABLE,
    ),
    "drips one byte at a time": (_drip, Reason.TIMEOUT, State.UNREACHABLE),
    "cuts the body": (raw(HEAD + b"Content-Length: 99999\r\n\r\n" + PAGE[:9000]), Reason.INCOMPLETE, State.BROKEN),
    "cuts a chunked body": (
        raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n2000\r\n" + PAGE[:0x2000] + b"\r\n"),
        Reason.INCOMPLETE,
        State.BROKEN,
    ),
    "wants another key": (answer(401, b"{}"), Reason.AUTH, State.DENIED),
    "forbids": (answer(403, b"{}"), Reason.AUTH, State.DENIED),
    "has no page, as vLLM always has": (answer(404, b""), Reason.STATUS, State.BROKEN),
    "fails to write its page": (answer(500, b"struct.error"), Reason.STATUS, State.BROKEN),
    "is gone, and a proxy says so": (answer(502, b"<html>Bad Gateway"), Reason.STATUS, State.UNREACHABLE),
    "does not answer its proxy in time": (answer(504, b"<html>"), Reason.STATUS, State.UNREACHABLE),
    "says that it has no metrics, as vLLM never does": (answer(501, b"{}"), Reason.STATUS, State.BROKEN),
    "is loading": (answer(503, b'{"error":{"code":503}}'), Reason.STATUS, State.LOADING),
    "answers 204 without a page": (raw(b"HTTP/1.1 204 X\r\n\r\n"), Reason.STATUS, State.BROKEN),
    "redirects to another host": (_redirect("http://192.0.2.1/metrics"), Reason.REDIRECT, State.BROKEN),
    "redirects to https on the same host": (_redirect("https://127.0.0.1/metrics"), Reason.REDIRECT, State.BROKEN),
    "redirects to itself for ever": (_redirect("/metrics"), Reason.REDIRECT, State.BROKEN),
    "redirects to nowhere": (_redirect("http://[/"), Reason.REDIRECT, State.BROKEN),
    "answers HTML": (answer(200, b"<!doctype html><p>hello"), Reason.PARSE, State.BROKEN),
    "answers JSON": (answer(200, b"[]"), Reason.PARSE, State.BROKEN),
    "answers binary": (answer(200, bytes(reversed(range(256)))), Reason.PARSE, State.BROKEN),
    # For Prometheus a NUL byte where a line begins ends the page, so this one is empty.
    "answers NUL bytes": (answer(200, bytes(512)), Reason.INCOMPLETE, State.BROKEN),
    "wraps the page in a JSON string": (answer(200, b'"a 1\\n"'), Reason.PARSE, State.BROKEN),
    "answers nothing": (answer(200, b""), Reason.INCOMPLETE, State.BROKEN),
    "answers comments only": (
        answer(200, b"# TYPE vllm:num_requests_running gauge\n"),
        Reason.INCOMPLETE,
        State.BROKEN,
    ),
    "answers another program's page": (answer(200, b"node_load1 0.5\n"), Reason.INCOMPLETE, State.BROKEN),
    "answers another engine's page": (
        answer(200, capture("llama-server-b11434/idle")),
        Reason.INCOMPLETE,
        State.BROKEN,
    ),
    "runs with --disable-log-stats": (
        answer(200, b"http_request_duration_highr_seconds_count 3\n"),
        Reason.INCOMPLETE,
        State.DISABLED,
    ),
    "sends more than we read": (answer(200, b"a 1\n" * 2**22 + b"b 1\n" * 8), Reason.SIZE, State.BROKEN),
    "sends 200 MB": (_endless(200 * 10**6), Reason.SIZE, State.BROKEN),
    "sends a gzip bomb": (answer(200, _bomb(), headers=GZIP), Reason.SIZE, State.BROKEN),
    "says gzip and sends text": (answer(200, PAGE, headers=GZIP), Reason.ENCODING, State.BROKEN),
    "cuts a gzip body": (answer(200, gzip.compress(PAGE)[:-400], headers=GZIP), Reason.INCOMPLETE, State.BROKEN),
    "compresses twice": (answer(200, gzip.compress(gzip.compress(PAGE)), headers=GZIP), Reason.PARSE, State.BROKEN),
    "uses an encoding nobody asked for": (
        answer(200, PAGE, headers="Content-Encoding: br"),
        Reason.ENCODING,
        State.BROKEN,
    ),
    "does not speak HTTP": (raw(b"SSH-2.0-OpenSSH_9.2\r\n"), Reason.PARSE, State.BROKEN),
    "sends a header without end": (_without_end(b"HTTP/1.1 200 OK\r\nX: ", b"a"), Reason.PARSE, State.BROKEN),
    "sends headers without end": (_without_end(b"HTTP/1.1 200 OK\r\n", b"X: a\r\n"), Reason.PARSE, State.BROKEN),
    "sends trailers without end": (
        _without_end(HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\na 1\n\r\n0\r\n", b"X: a\r\n"),
        Reason.PARSE,
        State.BROKEN,
    ),
    "says two lengths": (
        raw(HEAD + b"Content-Length: 4\r\nContent-Length: 8\r\n\r\na 1\nb 1\n"),
        Reason.PARSE,
        State.BROKEN,
    ),
    "says a length below nothing": (raw(HEAD + b"Content-Length: -4\r\n\r\na 1\n"), Reason.PARSE, State.BROKEN),
    "sends a chunk of no size": (
        raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\nsoon\r\na 1\n\r\n0\r\n\r\n"),
        Reason.PARSE,
        State.BROKEN,
    ),
    "promises OpenMetrics and lacks its end": (
        answer(200, PAGE, headers="Content-Type: application/openmetrics-text; version=1.0.0"),
        Reason.PARSE,
        State.BROKEN,
    ),
}


@pytest.mark.parametrize("case", FAILURES)
def test_an_engine_that(case: str) -> None:
    behaviour, reason, state = FAILURES[case]
    outcome = look(behaviour, budget=QUICK if reason is Reason.TIMEOUT else 30.0)
    lines = outcome.page.splitlines()
    assert outcome.sentence
    assert 'llm_replica_up{model="m"} 0.0' in lines
    assert f'llm_replica_state{{model="m",state="{state}"}} 1.0' in lines
    assert f'llm_replica_scrape_errors_total{{reason="{reason}"}} 1.0' in lines
    assert catalogue.REQUESTS_RUNNING.name not in outcome.page
    assert sum(line.endswith(" 1.0") for line in lines) == 2, "one state, one error, and no other claim"


@pytest.mark.parametrize(
    "before",
    ["kv_cache_usage_perc", "prefix_cache_queries_total", "request_success_total", "e2e_request_latency_seconds"],
)
def test_a_body_without_length_that_is_cut_at_a_line_end_is_no_page(before: str) -> None:
    outcome = look(raw(HEAD + b"\r\n" + PAGE[: PAGE.index(f"# HELP vllm:{before} ".encode())]))
    assert (outcome.up, outcome.state) == (False, State.BROKEN)
    assert outcome.sentence.startswith("the page has no length and seems cut: it lacks llm_")
    assert "llm_requests_running" not in outcome.page


SWITCHED_OFF = {
    "llama-server": (501, "start llama-server with --metrics"),
    "sglang": (404, "start SGLang with --enable-metrics"),
}


@pytest.mark.parametrize("name", SWITCHED_OFF)
def test_an_engine_whose_metrics_are_switched_off_is_told_apart_with_the_remedy(name: str) -> None:
    status, remedy = SWITCHED_OFF[name]
    disabled = (CAPTURES / "llama-server-b11434/metrics-501-disabled.json").read_bytes()
    outcome = look(answer(status, disabled), engine=name)
    assert (outcome.state, outcome.up) == (State.DISABLED, False)
    assert outcome.sentence == f"/metrics answered status {status}: {remedy}"


LIKE = {
    "compressed without saying so": gzip.compress(PAGE),
    "UTF-16 text": PAGE.decode().encode("utf-16"),
    "HTML or XML": b"\n <!doctype html><p>hello",
    "JSON": b'[{"iter": 11}]',
    "a page within quotes": b'"a 1\\n"',
    "a page within a code fence": b"```\na 1\n```\n",
}


@pytest.mark.parametrize("words", LIKE)
def test_an_answer_that_is_no_page_says_what_it_looks_like(words: str) -> None:
    outcome = look(answer(body=LIKE[words]))
    assert (outcome.up, outcome.state) == (False, State.BROKEN)
    assert outcome.sentence.startswith(f"/metrics seems to be {words}: line ")


@pytest.mark.parametrize("status", [502, 504, 520, 521, 522, 523, 524])
def test_a_proxy_that_cannot_reach_the_engine_says_so(status: int) -> None:
    outcome = look(answer(status, b"<html>"))
    assert outcome.state is State.UNREACHABLE
    assert outcome.sentence == f"/metrics answered status {status}: a proxy answers, the engine behind it does not"


def test_an_engine_that_wants_a_key_says_where_to_name_it() -> None:
    outcome = look(answer(401, b"{}"))
    assert outcome.sentence == "/metrics answered status 401: it needs a key: name its file in api_key_file"


def test_an_engine_that_refuses_connections() -> None:
    async def scenario() -> str:
        async with watching(f"http://127.0.0.1:{free_port()}") as service:
            return (await service.look(service.watches["r"], 30)).page

    page = asyncio.run(scenario())
    assert 'llm_replica_state{model="m",state="unreachable"} 1.0' in page
    assert 'llm_replica_scrape_errors_total{reason="refused"} 1.0' in page


def test_a_name_that_does_not_exist() -> None:
    async def scenario() -> str:
        async with watching("http://no-such-host.invalid:8000") as service:
            return (await service.look(service.watches["r"], 30)).page

    assert 'llm_replica_scrape_errors_total{reason="dns"} 1.0' in asyncio.run(scenario())


@pytest.mark.parametrize("behaviour", [raw(b"", then_close=False), _drip], ids=["hangs", "drips"])
def test_the_deadline_is_for_the_whole_scrape(behaviour: Behaviour) -> None:
    start = time.monotonic()
    outcome = look(behaviour, budget=QUICK)
    assert time.monotonic() - start < QUICK + BUSY
    assert QUICK - 0.01 < outcome.duration < QUICK + BUSY, "the event loop counts milliseconds"


def test_a_redirect_on_the_same_origin_is_followed() -> None:
    outcome = look(by_path(metrics=_redirect("/metrics/x"), metrics_x=answer()))
    assert outcome.up


def test_a_gzip_body_is_read_though_it_was_not_asked_for() -> None:
    assert look(answer(200, gzip.compress(PAGE), headers=GZIP)).running == 8


@pytest.mark.parametrize("hint", [b"100 Continue", b"103 Early Hints\r\nLink: </x>"])
def test_an_answer_before_the_answer_is_passed_over(hint: bytes) -> None:
    length = f"Content-Length: {len(PAGE)}\r\n\r\n".encode()
    assert look(raw(b"HTTP/1.1 " + hint + b"\r\n\r\n" + HEAD + length + PAGE)).running == 8


def test_an_answer_of_http_1_0_is_read() -> None:
    assert look(raw(b"HTTP/1.0 200 OK\r\n\r\n" + PAGE)).running == 8


def test_a_chunked_body_is_read() -> None:
    chunk = f"{len(PAGE):x}\r\n".encode() + PAGE + b"\r\n0\r\n\r\n"
    assert look(raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk)).running == 8


def test_a_whole_body_without_length_is_read() -> None:
    assert look(raw(HEAD + b"\r\n" + PAGE)).running == 8


@pytest.mark.parametrize("content_type", ["", "Content-Type: text/html", "Content-Type: application/json"])
def test_a_page_is_judged_by_its_body_not_by_its_content_type(content_type: str) -> None:
    assert look(answer(headers=content_type or "X: y")).up


def test_a_connection_that_went_stale_costs_nothing() -> None:
    asked: list[int] = []

    async def close_when_idle(_request: bytes, writer: asyncio.StreamWriter) -> None:
        asked.append(1)
        writer.write(HEAD + f"Content-Length: {len(PAGE)}\r\n\r\n".encode() + PAGE)
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.close()

    async def scenario() -> list[bool]:
        async with engine(close_when_idle) as address, watching(f"http://{address}") as service:
            watch = service.watches["r"]
            found = []
            for _ in range(4):
                found.append((await service.look(watch, 30)).up)
                await asyncio.sleep(0.06)
            return found

    assert asyncio.run(scenario()) == [True] * 4


def test_a_connection_that_is_closed_as_it_is_used_again_costs_one_more_question() -> None:
    used: list[asyncio.StreamWriter] = []

    async def answer_once_each(request: bytes, writer: asyncio.StreamWriter) -> None:
        if writer in used:
            writer.close()
            return
        used.append(writer)
        await answer()(request, writer)

    async def scenario() -> list[bool]:
        async with engine(answer_once_each) as address, watching(f"http://{address}") as service:
            return [(await service.look(service.watches["r"], 30)).up for _ in range(4)]

    assert asyncio.run(scenario()) == [True] * 4


def test_nothing_of_an_earlier_page_is_repeated_after_a_failure() -> None:
    behaviours = [answer(), answer(), answer(500, b"")]

    async def scenario() -> tuple[str, str]:
        async def behave(request: bytes, writer: asyncio.StreamWriter) -> None:
            await (behaviours[0] if broken == 0 else behaviours[2])(request, writer)

        broken = 0
        async with engine(behave) as address, watching(f"http://{address}") as service:
            good = await service.look(service.watches["r"], 30)
            broken = 1
            bad = await service.look(service.watches["r"], 30)
            return good.page, bad.page

    good, bad = asyncio.run(scenario())
    assert "llm_requests_running" in good
    assert "llm_requests_running" not in bad
    assert "llm_replica_info" not in bad
    assert 'llm_replica_up{model="m"} 0.0' in bad
