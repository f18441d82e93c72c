"""Pages of cards are read with the care of a replica's: keys, authorities, one deadline, limits on what is unpacked."""

import asyncio
import gzip
import ssl
import time
from pathlib import Path

import pytest
import trustme

from exporter.cards import CardPage
from exporter.gpu.page import PageReader
from exporter.gpu.reading import Failure, Snapshot
from exporter.gpu.sources import PAGE_SOURCES
from exporter.scrape import Scraper
from tests.exporter.sockets import Behaviour, answer, engine, raw

PAGE = b'DCGM_FI_DEV_GPU_TEMP{UUID="GPU-a"} 41\n'
KEY = "sk-7f3a-not-to-be-told"


def read(
    behaviour: Behaviour,
    *,
    tls: ssl.SSLContext | None = None,
    ca_file: Path | None = None,
    api_key_file: Path | None = None,
    budget: float = 5.0,
) -> Snapshot:
    async def scenario() -> Snapshot:
        scraper = Scraper()
        try:
            async with engine(behaviour, tls=tls) as address:
                url = f"{'https' if tls else 'http'}://{address}"
                page = CardPage(url=url, ca_file=ca_file, api_key_file=api_key_file)
                return await PageReader(PAGE_SOURCES["dcgm"], page, scraper).read(budget)
        finally:
            await scraper.close()

    return asyncio.run(scenario())


async def _guarded(request: bytes, writer: asyncio.StreamWriter) -> None:
    await answer(200 if f"Authorization: Bearer {KEY}".encode() in request else 401, PAGE)(request, writer)


async def _drip(_request: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while True:
        writer.write(b"#")
        await writer.drain()
        await asyncio.sleep(0.02)


def test_a_key_opens_the_page_and_is_told_to_nobody(tmp_path: Path) -> None:
    key = tmp_path / "key"
    assert "needs a key" in read(_guarded).sentence
    key.write_text("another-one-not-to-be-told\n")
    refused = read(_guarded, api_key_file=key)
    assert (refused.failure, "refuses the key" in refused.sentence) == (Failure.UNUSABLE, True)
    assert "not-to-be-told" not in refused.sentence
    key.write_text(f"{KEY}\n")
    assert read(_guarded, api_key_file=key).failure is None
    key.unlink()
    gone = read(_guarded, api_key_file=key)
    assert (gone.failure, "api_key_file" in gone.sentence) == (Failure.UNUSABLE, True)


def test_a_page_over_https_is_read_where_its_authority_is_trusted(tmp_path: Path) -> None:
    authority, context, ca_file = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), tmp_path / "ca.pem"
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(ca_file))
    assert read(answer(200, PAGE), tls=context, ca_file=ca_file).failure is None
    refused = read(answer(200, PAGE), tls=context)
    assert (refused.failure, "certificate" in refused.sentence) == (Failure.UNREACHABLE, True)


@pytest.mark.parametrize(
    ("behaviour", "failure"),
    [
        (answer(200, gzip.compress(bytes(2**25)), headers="Content-Encoding: gzip"), Failure.UNUSABLE),
        (answer(200, b"# a line\n" * 2**21), Failure.UNUSABLE),
        (answer(200, b"X 1\n" * 60_000), Failure.UNUSABLE),
        (answer(200, PAGE, length=len(PAGE) + 1), Failure.TIMEOUT),
        (answer(302, b"", headers="Location: http://127.0.0.2:1/metrics"), Failure.UNUSABLE),
        (raw(b"", then_close=False), Failure.TIMEOUT),
        (_drip, Failure.TIMEOUT),
    ],
    ids=["gzip bomb", "large", "many lines", "cut", "redirect", "hangs", "drips"],
)
def test_what_floods_hangs_or_lures_away_is_a_failure_in_time(behaviour: Behaviour, failure: Failure) -> None:
    start = time.monotonic()
    assert read(behaviour, budget=0.5).failure is failure
    assert time.monotonic() - start < 3
