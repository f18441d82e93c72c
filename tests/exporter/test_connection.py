"""The client on its own: what servers send, in whatever pieces and order, and which connections may be used again."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trustme
import uvloop

from exporter.connection import (
    ClosedError,
    Connection,
    CutError,
    ExchangeError,
    MalformedError,
    OversizeError,
    Response,
)
from exporter.names import Names
from exporter.pool import Place, Pool, UnreachableError
from exporter.scrape import Origin, Scraper
from running.ports import free_port
from tests.exporter.fetching import BODY, asked
from tests.exporter.sockets import Behaviour, answer, by_path, engine, path_of, raw

ASK = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
WHOLE = OK + b"Content-Length: 4\r\n\r\n" + BODY
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
LIMIT = 1000


class Server:
    """Sends the same bytes for every request; counts requests and connections."""

    def __init__(self, *sent: bytes, then_close: bool = False) -> None:
        self.sent = sent
        self.then_close = then_close
        self.requests = 0
        self.connections: set[object] = set()

    async def __call__(self, _request: bytes, writer: asyncio.StreamWriter) -> None:
        self.requests += 1
        self.connections.add(writer.get_extra_info("peername"))
        for piece in self.sent:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)
        if self.then_close:
            writer.close()


def run(behaviour: Behaviour, work: Callable[[Pool, Place], Awaitable[object]]) -> object:
    """Do something with a pool whose server behaves that way, on the event loop of production."""

    async def scenario() -> object:
        names = Names()
        pool = Pool(names)
        try:
            async with engine(behaviour) as address:
                host, _, port = address.rpartition(":")
                return await asyncio.wait_for(work(pool, Place(host=host, port=int(port))), 10)
        finally:
            pool.close()
            await names.close()

    return uvloop.run(scenario())


def ask(behaviour: Behaviour, times: int = 1, *, between: float = 0.02) -> list[Response]:
    """Ask several times, one after the other."""

    async def work(pool: Pool, place: Place) -> list[Response]:
        found = []
        for _ in range(times):
            found.append(await pool.ask(place, ASK, LIMIT))
            await asyncio.sleep(between)
        return found

    found = run(behaviour, work)
    assert isinstance(found, list)
    return found


NO_HTTP = {
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    "a status line without a number": b"HTTP/1.1 OK\r\n\r\n",
    "a header without end": OK + b"X: " + b"a" * 300_000,
    "headers without end": OK + b"X: a\r\n" * 50_000,
    "a header without a name": OK + b": a\r\n\r\n",
    "a length that is no number": OK + b"Content-Length: four\r\n\r\n" + BODY,
    "a negative length": OK + b"Content-Length: -4\r\n\r\n" + BODY,
    "two lengths": OK + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\n" + BODY,
    "a length and chunks": OK + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\na 1\n\r\n0\r\n\r\n",
    "a chunk whose length is no number": CHUNKED + b"xyz\r\n" + BODY,
    "a chunk longer than it says": CHUNKED + b"2\r\n" + BODY,
    "a chunk's extension without end": CHUNKED + b"4;" + b"a" * 600_000,
    "a trailer without end": CHUNKED + b"4\r\na 1\n\r\n0\r\nX: " + b"a" * 600_000,
    "interim answers without end": b"HTTP/1.1 102 Processing\r\n\r\n" * 20_000,
}


@pytest.mark.parametrize("case", NO_HTTP)
def test_this_is_not_http(case: str) -> None:
    with pytest.raises(MalformedError, match=r"."):
        ask(Server(NO_HTTP[case]))


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"", ClosedError),
        (OK + b"Content-Le", ClosedError),
        (b"HTTP/1.1 100 Continue\r\n\r\n", ClosedError),
        (OK + b"Content-Length: 5\r\n\r\n" + BODY, CutError),
        (CHUNKED + b"4\r\na 1\n\r\n", CutError),
        (CHUNKED + b"40\r\na 1\n", CutError),
        (OK + b"Content-Length: 1001\r\n\r\n" + BODY * 251, OversizeError),
        (OK + b"\r\n" + BODY * 251, OversizeError),
        (CHUNKED + b"fff\r\n" + BODY * 251, OversizeError),
    ],
)
def test_an_answer_that_ends_early_or_late_is_an_error(sent: bytes, error: type[ExchangeError]) -> None:
    with pytest.raises(error):
        ask(Server(sent, then_close=True))


SPLIT = tuple(bytes([byte]) for byte in WHOLE)
READ = {
    "in one piece": (WHOLE,),
    "byte by byte": SPLIT,
    "in chunks": (CHUNKED + b"1\r\na\r\n3;x=y\r\n", b" 1\n\r\n0\r\nTrailer: x\r\n\r\n"),
    "after interim answers": (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", WHOLE),
    "with bare line feeds": (WHOLE.replace(b"\r\n", b"\n"),),
    "with a header in Latin-1": (OK + b"X: \xe9\r\nContent-Length: 4\r\n\r\n" + BODY,),
    "without a reason": (WHOLE.replace(b" OK", b""),),
}


@pytest.mark.parametrize("case", READ)
def test_a_body_is_read(case: str) -> None:
    server = Server(*READ[case])
    for response in ask(server, 3):
        assert (response.status, response.body, response.framed) == (200, BODY, True)
    assert len(server.connections) == 1


@pytest.mark.parametrize("version", [b"HTTP/1.1", b"HTTP/1.0"])
def test_a_body_without_length_ends_with_its_connection(version: bytes) -> None:
    [response] = ask(Server(version + b" 200 OK\r\n\r\n" + BODY, then_close=True))
    assert (response.body, response.framed) == (BODY, False)


ONCE = {
    "says that it closes": OK + b"Connection: close\r\nContent-Length: 4\r\n\r\n" + BODY,
    "speaks HTTP/1.0": WHOLE.replace(b"HTTP/1.1", b"HTTP/1.0"),
    "sends more than its length": WHOLE + b"b 2\n",
    "sends another answer behind it": WHOLE + WHOLE,
    "sends half of another answer behind it": WHOLE + b"HTTP/1.1 2",
}


@pytest.mark.parametrize("case", ONCE)
def test_a_connection_is_not_used_again_if_its_server(case: str) -> None:
    server = Server(ONCE[case])
    assert [response.body for response in ask(server, 3)] == [BODY] * 3
    assert len(server.connections) == 3


def test_what_is_sent_to_an_idle_connection_ends_it() -> None:
    server = Server(WHOLE, WHOLE)
    assert [response.body for response in ask(server, 3, between=0.2)] == [BODY] * 3
    assert len(server.connections) == 3


def test_http_1_0_that_wants_to_be_kept_is_kept() -> None:
    server = Server(WHOLE.replace(b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n"))
    ask(server, 3)
    assert len(server.connections) == 1


@pytest.mark.parametrize(("status", "used"), [(b"404 X", 1), (b"503 X", 1)])
def test_an_error_that_came_whole_leaves_the_connection_as_it_was(status: bytes, used: int) -> None:
    server = Server(WHOLE.replace(b"200 OK", status))
    assert {response.status for response in ask(server, 3)} == {int(status[:3])}
    assert len(server.connections) == used


def test_the_body_of_an_error_is_not_waited_for() -> None:
    server = Server(b"HTTP/1.1 500 X\r\nContent-Length: 9999999\r\n\r\n")
    assert {response.status for response in ask(server, 2)} == {500}
    assert len(server.connections) == 2


def test_an_engine_that_wants_another_protocol_has_its_status_told() -> None:
    [response] = ask(Server(b"HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"))
    assert response.status == 101


def test_a_connection_that_went_stale_is_replaced_once() -> None:
    server = Server(WHOLE)

    async def work(pool: Pool, place: Place) -> bytes:
        await pool.ask(place, ASK, LIMIT)
        await asyncio.sleep(0.05)  # the server is done with it too
        server.sent, server.then_close = (), True  # the kept connection and the new one both end
        with pytest.raises(ClosedError):
            await pool.ask(place, ASK, LIMIT)
        assert (server.requests, len(server.connections)) == (3, 2)
        server.sent, server.then_close = (WHOLE,), False
        return (await pool.ask(place, ASK, LIMIT)).body

    assert run(server, work) == BODY


def test_a_new_connection_that_ends_without_an_answer_is_not_replaced() -> None:
    server = Server(b"", then_close=True)
    with pytest.raises(ClosedError):
        ask(server)
    assert server.requests == 1


def test_an_end_of_an_idle_connection_that_is_written_as_an_answer_is_none() -> None:
    """Some servers say 408 to who asks nothing for a while, and the request may be on its way by then."""
    server = Server(WHOLE)

    async def work(pool: Pool, place: Place) -> list[int]:
        await pool.ask(place, ASK, LIMIT)
        await asyncio.sleep(0.05)
        server.sent, server.then_close = (b"HTTP/1.1 408 X\r\nConnection: close\r\n\r\n",), True
        first = await pool.ask(place, ASK, LIMIT)  # an engine that says so of a new connection means it
        return [first.status, server.requests, len(server.connections)]

    assert run(server, work) == [408, 3, 2]


def test_a_request_that_was_half_answered_is_not_sent_again() -> None:
    server = Server(WHOLE)

    async def work(pool: Pool, place: Place) -> None:
        await pool.ask(place, ASK, LIMIT)
        await asyncio.sleep(0.05)
        server.sent, server.then_close = (OK,), True
        with pytest.raises(ClosedError):
            await pool.ask(place, ASK, LIMIT)

    run(server, work)
    assert server.requests == 2


def test_who_gives_up_leaves_no_connection_behind() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def never_done(_request: bytes, writer: asyncio.StreamWriter) -> None:
        begun.set()
        try:
            while True:
                writer.write(b"HTTP/1.1 102 X\r\n\r\n")
                await writer.drain()
                await asyncio.sleep(0.01)
        except ConnectionError:
            ended.set()

    async def work(pool: Pool, place: Place) -> None:
        task = asyncio.create_task(pool.ask(place, ASK, LIMIT))
        await asyncio.wait_for(begun.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(ended.wait(), 5)
        assert pool._take(place) is None

    run(never_done, work)


def test_who_gives_up_as_the_answer_comes_leaves_no_connection_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks: list[asyncio.Task[Response]] = []
    answered = Connection._answer

    def answer_and_cancel(connection: Connection) -> None:
        answered(connection)
        tasks[0].cancel()

    monkeypatch.setattr(Connection, "_answer", answer_and_cancel)

    async def work(pool: Pool, place: Place) -> bool:
        connection = await pool._connect(place)
        tasks.append(asyncio.create_task(pool._use(connection, place, ASK, LIMIT)))
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        return connection.is_usable or bool(pool._idle)

    assert run(Server(WHOLE), work) is False


def test_many_at_once_have_a_connection_each() -> None:
    server = Server(WHOLE)

    async def work(pool: Pool, place: Place) -> set[bytes]:
        return {one.body for one in await asyncio.gather(*(pool.ask(place, ASK, LIMIT) for _ in range(50)))}

    assert run(server, work) == {BODY}
    assert len(server.connections) == 50


def test_idle_connections_are_closed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exporter.pool._IDLE_SECONDS", 0.05)

    async def work(pool: Pool, place: Place) -> None:
        await pool.ask(place, ASK, LIMIT)
        assert pool._idle
        while pool._idle:  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.01)

    run(Server(WHOLE), work)


def test_a_port_where_nobody_listens_is_unreachable() -> None:
    async def work(pool: Pool, _place: Place) -> None:
        with pytest.raises(UnreachableError) as error:
            await pool.ask(Place(host="127.0.0.1", port=free_port()), ASK, LIMIT)
        assert isinstance(error.value.cause, ConnectionRefusedError)

    run(Server(), work)


def test_a_request_says_what_it_has_to_and_no_more() -> None:
    [request] = asked(key="s3cr3t", keep_alive=False)
    first, *headers = request.decode().rstrip().split("\r\n")
    assert first == "GET /metrics HTTP/1.1"
    assert headers[0].startswith("Host: 127.0.0.1:")
    assert headers[1:] == [
        "Accept: text/plain;version=0.0.4;q=1,*/*;q=0.1",
        "Accept-Encoding: identity",
        "User-Agent: servewatch-exporter",
        "Authorization: Bearer s3cr3t",
        "Connection: close",
    ]


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    assert len(asked()) == 1


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/b?c=d", "/b?c=d"),
        ("b", "/b"),
        ("/b c\xe9", "/b%20c%C3%A9"),
        ("/b%20c#d", "/b%20c"),
        ("?c=d", "/metrics?c=d"),
    ],
)
def test_a_location_becomes_a_path(location: str, path: str) -> None:
    first = raw(f"HTTP/1.1 302 X\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode("latin-1"))

    async def behave(request: bytes, writer: asyncio.StreamWriter) -> None:
        await (first if path_of(request) == "/metrics" else answer(body=BODY))(request, writer)

    assert [path_of(request) for request in asked(behave)] == ["/metrics", path]


def test_a_cookie_is_not_sent_back() -> None:
    redirect = answer(307, b"", headers="Location: /b\r\nSet-Cookie: a=b; Path=/")
    _, second = asked(by_path(metrics=redirect, b=answer(body=BODY)))
    assert b"ookie" not in second


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_a_tls_connection_is_kept_and_names_its_host(name: str, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    named: list[str | None] = []
    context.sni_callback = lambda _connection, asked_for, _context: named.append(asked_for)
    server = Server(WHOLE)

    async def scenario() -> list[bytes]:
        scraper = Scraper()
        async with engine(server, tls=context) as address:
            origin = Origin(url=f"https://{name}:{address.rpartition(':')[2]}", ca_file=tmp_path / "ca.pem")
            until = asyncio.get_running_loop().time() + 5
            found = [(await scraper.get(origin, "/metrics", until)).body for _ in range(3)]
            await scraper.close()
        return found

    assert uvloop.run(scenario()) == [BODY] * 3
    assert len(server.connections) == 1
    assert named == ["localhost" if name == "localhost" else None]
