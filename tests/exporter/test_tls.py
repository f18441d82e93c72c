"""https: certificates are checked, a fleet's own authority is trusted where fleet.yml says so."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from exporter.watch import Outcome
from tests.exporter.sockets import answer, engine, raw, watching

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
    assert "certificate" in outcome.sentence


def test_a_certificate_for_another_name_is_refused(authority: trustme.CA, ca_file: Path) -> None:
    outcome = look(authority.issue_cert("elsewhere.example"), ca_file=ca_file)
    assert 'llm_replica_scrape_errors_total{reason="tls"} 1.0' in outcome.page


def test_an_expired_certificate_is_refused(authority: trustme.CA, ca_file: Path) -> None:
    expired = authority.issue_cert("127.0.0.1", not_after=NOW - timedelta(days=1))
    outcome = look(expired, ca_file=ca_file)
    assert 'llm_replica_scrape_errors_total{reason="tls"} 1.0' in outcome.page
    assert "expired" in outcome.sentence


def test_an_engine_that_speaks_plain_http_on_the_port_is_no_tls_engine() -> None:
    async def scenario() -> str:
        async def at_once(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await raw(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")(b"", writer)

        server = await asyncio.start_server(at_once, "127.0.0.1", 0)
        async with server, watching(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}") as service:
            return (await service.look(service.watches["r"], 30)).page

    assert 'llm_replica_scrape_errors_total{reason="tls"} 1.0' in asyncio.run(scenario())


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
