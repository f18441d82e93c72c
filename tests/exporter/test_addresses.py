"""Where an engine is: names, several addresses of one name, IPv6, and what is said where nobody is."""

import asyncio
import socket

import pytest

from exporter.failures import Reason, ScrapeError
from exporter.names import Names
from running.ports import free_port
from tests.exporter.fetching import BODY, asked, fetch

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n" + BODY


def test_a_name_is_looked_up() -> None:
    [request] = asked(host="localhost")
    assert b"\r\nHost: localhost:" in request


@pytest.mark.parametrize("url", ["http://[fe80::1%25lo]:8000", "http://[fe80::1%lo]:8000"])
def test_an_address_of_a_zone_is_read_in_either_spelling(url: str) -> None:
    with pytest.raises(ScrapeError, match=r"no connection to fe80::1%lo:8000: |in time") as error:
        fetch(url)
    assert error.value.reason is not Reason.DNS


@pytest.mark.parametrize("dead", ["127.0.0.2", "192.0.2.1", "::1"])
def test_a_name_with_an_address_where_nobody_is_has_its_other_one_asked(
    dead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def addresses(_names: Names, _host: str, port: int) -> list[object]:
        families = {host: socket.AF_INET6 if ":" in host else socket.AF_INET for host in (dead, "127.0.0.1")}
        return [(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port)) for host, family in families.items()]

    monkeypatch.setattr(Names, "addresses", addresses)
    [request] = asked(host="two-addresses.invalid")
    assert b"\r\nHost: two-addresses.invalid:" in request


def test_addresses_that_fail_in_different_ways_are_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def addresses(_names: Names, _host: str, port: int) -> list[object]:
        hosts = ("127.0.0.1", "255.255.255.255")
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port)) for host in hosts]

    monkeypatch.setattr(Names, "addresses", addresses)
    port = free_port()
    with pytest.raises(ScrapeError) as error:
        fetch(f"http://two-addresses.invalid:{port}")
    assert str(error.value) == f"no connection to two-addresses.invalid:{port}: its addresses fail, each in another way"


def test_an_address_in_ipv6_is_reached() -> None:
    async def scenario() -> tuple[bytes, list[bytes]]:
        requests = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            requests.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(WHOLE)
            writer.close()
            await writer.wait_closed()

        async with await asyncio.start_server(serve, "::1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            return await asyncio.to_thread(fetch, f"http://[::1]:{port}"), requests

    body, [request] = asyncio.run(scenario())
    assert body == BODY
    assert b"\r\nHost: [::1]:" in request


@pytest.mark.parametrize(
    "name", ["no-such-host.invalid", "b\xfccher.invalid", "a..b", f"{'a' * 64}.invalid", f"{chr(0xFC) * 70}.invalid"]
)
def test_a_name_that_is_nobodys_is_said_so(name: str) -> None:
    with pytest.raises(ScrapeError, match=r"cannot be resolved") as error:
        fetch(f"http://{name}")
    assert error.value.reason is Reason.DNS
