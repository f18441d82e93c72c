"""Scrape: one HTTP GET of an engine -> the bytes of its answer, or ScrapeError.

One deadline covers everything from name resolution to the last byte, so an engine that drips bytes cannot outlive it.
Redirects are followed on the same origin only, so a key never leaves it. Bodies are limited after decompression.
"""

import errno
import os
import ssl
import zlib
from asyncio import sleep, timeout_at
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from exporter.failures import Reason, ScrapeError
from exporter.secret import Version, version

__all__ = ["Answer", "Origin", "Scraper"]

BODY_LIMIT = 16 * 2**20
"""Bytes of a decoded body; a large page (16 ranks) has about 1 MiB."""
_STEP = 2**18  # bytes that are unpacked at once
_REDIRECTS = 3
_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
_ACCEPT = "text/plain;version=0.0.4;q=1,*/*;q=0.1"
_NOT_REACHED = {errno.ECONNREFUSED: Reason.REFUSED, errno.ETIMEDOUT: Reason.TIMEOUT, errno.ECONNRESET: Reason.RESET}


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where and how to ask one replica. `key` is secret: it goes into one header and nowhere else."""

    url: str
    key: str | None = None
    ca_file: Path | None = None
    keep_alive: bool = True

    def __repr__(self) -> str:
        """Print without the key."""
        return f"Origin({self.url})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A body with status 200. `framed` is false where only the end of the connection ended it: it may be cut."""

    body: bytes
    content_type: str
    framed: bool


class Scraper:
    """Asks engines; connections are shared, and no replica waits for another."""

    def __init__(self, resolver: AbstractResolver | None = None) -> None:
        """Open nothing yet; names are looked up without threads, so those that hang take nothing from the others."""
        self._resolver = resolver or aiohttp.AsyncResolver()
        connector = aiohttp.TCPConnector(
            limit=0, resolver=self._resolver, ttl_dns_cache=10, enable_cleanup_closed=False
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()
        await self._resolver.close()

    async def get(self, origin: Origin, path: str, deadline: float, *, limit: int = BODY_LIMIT) -> Answer:
        """Fetch a path of a replica until `deadline` (the loop's clock), or raise ScrapeError.

        `limit` is for the decoded body, bytes.
        """
        try:
            async with timeout_at(deadline):
                return await self._follow(origin, URL(f"{origin.url}{path}", encoded=True), limit)
        except TimeoutError:
            raise ScrapeError(
                Reason.TIMEOUT, f"no complete answer from {path} in time: busy, hung or unreachable"
            ) from None
        except (aiohttp.ClientError, OSError, ValueError, zlib.error) as error:
            raise _translated(error, path) from None

    async def _follow(self, origin: Origin, url: URL, limit: int) -> Answer:
        for _ in range(_REDIRECTS + 1):
            async with self._session.get(
                url,
                headers=_headers(origin),
                allow_redirects=False,
                ssl=_trust(origin.ca_file) if url.scheme == "https" else True,
            ) as response:
                if response.status not in _REDIRECT_STATUSES:
                    return await _read(response, limit)
                target = _target(response)
                if target.origin() != url.origin():
                    raise ScrapeError(
                        Reason.REDIRECT,
                        f"{url.path} redirects to {target.origin()}; give that address as url if it is the engine's",
                        status=response.status,
                    )
                url = target
        raise ScrapeError(Reason.REDIRECT, f"more than {_REDIRECTS} redirects, the last one to {url.path}")


def _headers(origin: Origin) -> dict[str, str]:
    headers = {"Accept": _ACCEPT, "Accept-Encoding": "identity", "User-Agent": "servewatch-exporter"}
    if origin.key is not None:
        headers["Authorization"] = f"Bearer {origin.key}"
    if not origin.keep_alive:
        headers["Connection"] = "close"
    return headers


def _trust(ca_file: Path | None) -> ssl.SSLContext:
    """Answer whom to trust: the system's authorities, or those of a file, read again when it changes."""
    try:
        return _context(ca_file, version(ca_file) if ca_file else None)
    except (OSError, ValueError) as error:  # an ssl.SSLError is an OSError
        raise ScrapeError(Reason.TLS, f"ca_file {ca_file} cannot be used: {type(error).__name__}") from None


@lru_cache(maxsize=64)
def _context(ca_file: Path | None, _version: Version | None) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file)


def _target(response: aiohttp.ClientResponse) -> URL:
    try:
        target = response.url.join(URL(response.headers.get("Location", "")))
        target.origin()
    except ValueError:
        raise ScrapeError(
            Reason.REDIRECT, f"status {response.status} without a usable Location", status=response.status
        ) from None
    return target


async def _read(response: aiohttp.ClientResponse, limit: int) -> Answer:
    if response.status != HTTPStatus.OK:  # its body is not read: leaving closes the connection
        answered = f"{response.url.path} answered status {response.status}"
        if response.status not in {401, 403}:
            raise ScrapeError(Reason.STATUS, answered, status=response.status)
        has_key = "Authorization" in response.request_info.headers
        remedy = "it refuses the key in api_key_file" if has_key else "it needs a key: name its file in api_key_file"
        raise ScrapeError(Reason.AUTH, f"{answered}: {remedy}", status=response.status)
    body = await _body(response, limit)
    framed = "Content-Length" in response.headers or "chunked" in response.headers.get("Transfer-Encoding", "").lower()
    return Answer(body=body, content_type=response.headers.get("Content-Type", ""), framed=framed)


async def _body(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Read and decode a body; the limit holds for what was decoded, so a compressed bomb ends early."""
    decoder = _decoder(response.headers.get("Content-Encoding", "identity").strip().lower())
    parts: list[bytes] = []
    size = 0
    async for received in response.content.iter_any():
        data = received
        while data:
            if decoder and decoder.eof:
                decoder = _gunzip()  # gzip may come in several members, which together are the body
            part = decoder.decompress(data, min(_STEP, limit + 1 - size)) if decoder else data
            parts.append(part)
            size += len(part)
            if size > limit:
                response.close()
                raise ScrapeError(Reason.SIZE, f"the body is larger than {limit // 2**20} MiB")
            data = (decoder.unused_data or decoder.unconsumed_tail) if decoder else b""
            if data:
                await sleep(0)  # a few bytes may unpack to megabytes; others get a turn in between
    if decoder and not decoder.eof:
        raise ScrapeError(Reason.INCOMPLETE, "the compressed body is cut")
    return b"".join(parts)


def _decoder(encoding: str) -> "zlib._Decompress | None":
    if encoding in {"", "identity"}:
        return None
    if encoding in {"gzip", "x-gzip", "deflate"}:
        return _gunzip()
    raise ScrapeError(Reason.ENCODING, f"Content-Encoding {encoding[:40]!r} was not asked for and cannot be read")


def _gunzip() -> "zlib._Decompress":
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # 32: take zlib's header or gzip's


def _translated(error: Exception, path: str) -> ScrapeError:  # noqa: PLR0911 - one line for each kind
    """Map every error of the HTTP client to a reason; its text may hold addresses, never keys, but we write our own."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            return ScrapeError(Reason.DNS, f"the name {error.host!r} cannot be resolved")
        case aiohttp.ClientConnectorCertificateError():
            return ScrapeError(Reason.TLS, f"certificate refused: {error.certificate_error}")
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return ScrapeError(Reason.TLS, "TLS handshake failed; does the engine speak https on this port?")
        case aiohttp.ClientConnectorError():
            reason = _NOT_REACHED.get(error.errno or 0, Reason.REFUSED)
            return ScrapeError(reason, f"no connection to {error.host}:{error.port}: {_strerror(error)}")
        case aiohttp.ClientPayloadError():
            return ScrapeError(Reason.INCOMPLETE, f"the connection ended in the middle of {path}")
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError() | OSError():
            return ScrapeError(Reason.RESET, f"the connection was closed before {path} was answered")
        case aiohttp.ClientResponseError():
            return ScrapeError(Reason.PARSE, f"{path} was not answered in HTTP: {error.message.splitlines()[0][:80]}")
        case zlib.error():
            return ScrapeError(Reason.ENCODING, "the body is not what Content-Encoding says")
    return ScrapeError(Reason.PARSE, f"{path} was not answered in usable HTTP ({type(error).__name__})")


def _strerror(error: aiohttp.ClientConnectorError) -> str:
    if error.errno is not None and error.errno > 0:  # below 0 are those of name resolution
        return os.strerror(error.errno)
    return type(error.os_error).__name__
