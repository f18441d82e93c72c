"""https: certificates are checked, a fleet's own authority is trusted where fleet.yml says so."""

import asyncio
import re
import socket
import ssl
import threading
import warnings
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
import uvloop

from exporter.watch import Outcome
from tests.exporter.sockets import Behaviour, answer, engine, raw, watching

NOW = datetime.now(tz=UTC)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def ca_file(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("tls") / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    return file


def look(certificate: trustme.LeafCert, *, ca_file: Path | None = None) -> Outcome:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)

    async def scenario() -> Outcome:
        async with engine(answer(), tls=context) as address, watching(f"https://{address}", ca_file=ca_file) as service:
            return await service.look(service.watches["r"], 30)

    return asyncio.run(scenario())


def test_a_certificate_of_the_configured_authority_is_trusted(authority: trustme.CA, ca_file: Path) -> None:
    assert look(authority.issue_cert("127.0.0.1"), ca_file=ca_file).up


def test_a_certificate_of_an_unknown_authority_is_refused(authority: trustme.CA) -> None:
    outcome = look(authority.issue_cert("127.0.0.1"))
    assert 'llm_replica_scrape_errors_total{reason="tls"} 1.0' in outcome.page
    assert outcome.sentence == (
        "certificate refused: unable to get local issuer certificate; name its authority in tls: {ca_file: …}"
    )


def test_a_certificate_for_another_name_is_refused(authority: trustme.CA, ca_file: Path) -> None:
    outcome = look(authority.issue_cert("elsewhere.example"), ca_file=ca_file)
    assert 'llm_replica_scrape_errors_total{reason="tls"} 1.0' in outcome.page
    mismatch = "IP address mismatch, certificate is not valid for '127.0.0.1'"
    assert outcome.sentence == f"certificate refused: {mismatch}"


def test_an_expired_certificate_is_refused(authority: trustme.CA, ca_file: Path) -> None:
    expired = authority.issue_cert("127.0.0.1", not_after=NOW - timedelta(days=1))
    outcome = look(expired, ca_file=ca_file)
    assert 'llm_replica_scrape_errors_total{reason="tls"} 1.0' in outcome.page
    assert "expired" in outcome.sentence


async def sentence_and_reason(url: str, ca_file: Path | None = None) -> tuple[str, str]:
    """Answer what one scrape says, and the reason that it counts."""
    async with watching(url, ca_file=ca_file) as service:
        outcome = await service.look(service.watches["r"], 30)
    [reason] = re.findall(r'scrape_errors_total{reason="([a-z]+)"} 1\.0', outcome.page)
    return outcome.sentence, reason


@pytest.mark.parametrize(
    ("says", "sentence", "reason"),
    [
        (b"HTTP/1.1 400 X\r\n\r\n", "TLS failed: no TLS is spoken on this port: is it one for http?", "tls"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "TLS failed: no TLS is spoken on this port: is it one for http?", "tls"),
        (b"", "ADDRESS closed the connection in the TLS handshake: does it speak https?", "reset"),
    ],
)
def test_an_engine_that_speaks_no_tls_on_the_port_is_said_so(says: bytes, sentence: str, reason: str) -> None:
    async def scenario() -> None:
        async def at_once(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await raw(says)(b"", writer)

        async with await asyncio.start_server(at_once, "127.0.0.1", 0) as server:
            address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            expected = (sentence.replace("ADDRESS", address), reason)
            assert await sentence_and_reason(f"https://{address}") == expected

    uvloop.run(scenario())


def bare(says: bytes) -> Behaviour:
    """Answer without HTTP."""
    return raw(b"HTTP/1.0 400 Bad Request\r\n\r\n" + says)


@pytest.mark.parametrize(
    ("behaviour", "sentence", "reason"),
    [
        (bare(b"Client sent an HTTP request to an HTTPS server.\n"), "it wants https, write so in url", "status"),
        (bare(b"<center>The plain HTTP request was sent to HTTPS port</center>"), "it wants https", "status"),
        (raw(b"\x15\x03\x01\x00\x02\x02\x46"), "TLS is spoken on this port: write https in url", "parse"),
        (raw(b""), "was closed before /metrics was answered; a port for https does that too", "reset"),
    ],
)
def test_a_port_for_https_that_is_asked_in_http_is_said_so(behaviour: Behaviour, sentence: str, reason: str) -> None:
    async def scenario() -> tuple[str, str]:
        async with engine(behaviour) as address:
            return await sentence_and_reason(f"http://{address}")

    said, counted = uvloop.run(scenario())
    assert sentence in said
    assert counted == reason


def blocking(context: ssl.SSLContext) -> socket.socket:
    """Listen as OpenSSL alone does, which says why it refuses; asyncio's servers do not."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listening.accept()
        with context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False) as secure:
            with suppress(OSError):
                secure.do_handshake()
            secure.shutdown(socket.SHUT_WR)
            while socket.socket.recv(secure, 4096):  # what is unread would make a reset of the end
                pass

    threading.Thread(target=serve, daemon=True).start()
    return listening


@pytest.mark.parametrize(
    ("newest", "verify", "sentence"),
    [
        (ssl.TLSVersion.TLSv1_3, ssl.CERT_REQUIRED, "it wants a client certificate, and a scrape has none"),
        (ssl.TLSVersion.TLSv1_2, ssl.CERT_REQUIRED, "it wants a client certificate, or has old ciphers only"),
        (ssl.TLSVersion.TLSv1_1, ssl.CERT_NONE, "it speaks no TLS of version 1.2 or later"),
    ],
)
def test_tls_that_is_not_agreed_on_says_what_is_lacking(
    authority: trustme.CA, ca_file: Path, newest: ssl.TLSVersion, verify: ssl.VerifyMode, sentence: str
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        context.minimum_version = min(newest, ssl.TLSVersion.TLSv1)
        context.maximum_version = newest
    authority.configure_trust(context)
    context.verify_mode = verify
    with blocking(context) as listening:
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"
        assert uvloop.run(sentence_and_reason(url, ca_file)) == (f"TLS failed: {sentence}", "tls")


def test_an_authority_is_read_again_when_its_file_changes(tmp_path: Path) -> None:
    ca_file = tmp_path / "ca.pem"
    ca_file.write_text("not one\n")
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    async def scenario() -> list[str]:
        async with engine(answer(), tls=context) as address, watching(f"https://{address}", ca_file=ca_file) as service:
            watch = service.watches["r"]
            before = await service.look(watch, 30)
            authority.cert_pem.write_to_path(str(ca_file))
            now = await service.look(watch, 30)
            ca_file.unlink()
            return [before.sentence, now.sentence, (await service.look(watch, 30)).sentence]

    assert asyncio.run(scenario()) == [
        f"ca_file {ca_file} cannot be used: SSLError",
        "",
        f"ca_file {ca_file} cannot be used: FileNotFoundError",
    ]
