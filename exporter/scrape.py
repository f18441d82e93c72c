"""Scrape: one HTTP GET of an engine -> the bytes of its answer, or ScrapeError.

One deadline covers everything from name resolution to the last byte, so an engine that drips bytes cannot outlive it.
Redirects are followed on the same origin only, so a key never leaves it. Bodies are limited after decompression.
"""

import errno
import os
import ssl
import zlib
from asyncio import timeout_at
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

import aiodns

from exporter.connection import ClosedError, CutError, ExchangeError, OversizeError, Response
from exporter.failures import Reason, ScrapeError
from exporter.names import Names, UnknownNameError
from exporter.pool import Place, Pool, UnreachableError
from exporter.secret import Version, version
from exporter.tls_failure import tls_error
from exporter.unpack import oversize, unpacked

__all__ = ["Answer", "Origin", "Scraper"]

BODY_LIMIT = 16 * 2**20
"""Bytes of a decoded body; a large page (16 ranks) has about 1 MiB."""
_REDIRECTS = 3
_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
_PORTS = {"http": 80, "https": 443}
_HEADERS = (
    "Accept: text/plain;version=0.0.4;q=1,*/*;q=0.1\r\nAccept-Encoding: identity\r\nUser-Agent: servewatch-exporter\r\n"
)
_CLOSES_TOO = {
    "http": "; a port for https does that too",
    "https": "; an engine that wants a client certificate does that too",
}
_ABOUT_HTTPS = (b"an HTTPS server", b"to HTTPS port", b"an SSL-enabled server port")
_IN_PATHS = "/%?=&;:@+$,!~*'()[]"
"""What stands in a path as it is; all else that an engine writes into a Location is quoted."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Site:
    """Where an origin is; `host` as in a Host header, and without default port, so that spellings compare."""

    scheme: str
    name: str
    port: int
    host: str

    def __str__(self) -> str:
        """Write it as an address."""
        return f"{self.scheme}://{self.host}"


class Scraper:
    """Asks engines; connections are shared, and no replica waits for another."""

    def __init__(self, resolver: Callable[[], aiodns.DNSResolver] = aiodns.DNSResolver) -> None:
        """Open nothing yet; names are looked up without threads, so those that hang take nothing from the others."""
        self._names = Names(resolver)
        self._pool = Pool(self._names)

    async def close(self) -> None:
        """Close all connections."""
        self._pool.close()
        await self._names.close()

    async def get(self, origin: Origin, path: str, deadline: float, *, limit: int = BODY_LIMIT) -> Answer:
        """Fetch a path of a replica until `deadline` (the loop's clock), or raise ScrapeError.

        `limit` is for the decoded body, bytes.
        """
        try:
            async with timeout_at(deadline):
                return await self._follow(origin, path, limit)
        except TimeoutError:
            raise ScrapeError(
                Reason.TIMEOUT, f"no complete answer from {path} in time: busy, hung or unreachable"
            ) from None
        except ExchangeError as error:
            raise _unanswered(error, path, limit, origin) from None
        except zlib.error:
            raise ScrapeError(Reason.ENCODING, "the body is not what Content-Encoding says") from None

    async def _follow(self, origin: Origin, path: str, limit: int) -> Answer:
        site = _site(origin.url)
        place = Place(host=site.name, port=site.port, trust=_trust(origin.ca_file) if site.scheme == "https" else None)
        for _ in range(_REDIRECTS + 1):
            response = await self._ask(place, _request(origin, site, path), limit)
            if response.status not in _REDIRECT_STATUSES:
                return await _read(response, origin, path, limit)
            target, there = _target(response, f"{site}{path}")
            if target != site:
                raise ScrapeError(
                    Reason.REDIRECT,
                    f"{_bare(path)} redirects to {target}; give that address as url if it is the engine's",
                    status=response.status,
                )
            path = there
        raise ScrapeError(Reason.REDIRECT, f"more than {_REDIRECTS} redirects, the last one to {_bare(path)}")

    async def _ask(self, place: Place, request: bytes, limit: int) -> Response:
        try:
            return await self._pool.ask(place, request, limit)
        except UnknownNameError:
            raise ScrapeError(Reason.DNS, f"the name {place.host!r} cannot be resolved") from None
        except UnreachableError as error:
            raise _unreachable(error, place) from None


@lru_cache(maxsize=4096)
def _site(url: str) -> _Site:
    """Read an address; raise ValueError where it is none of http or https."""
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError(url)
    port = parts.port or _PORTS[parts.scheme]
    name = _ascii(parts.hostname)
    if ":" in name:
        name = name.replace("%25", "%")  # a zone as addresses are written (RFC 6874); written bare it is taken too
    bare = name.partition("%")[0]  # an address' zone is ours alone
    host = f"[{bare}]" if ":" in bare else bare
    return _Site(
        scheme=parts.scheme,
        name=name,
        port=port,
        host=host if port == _PORTS[parts.scheme] else f"{host}:{port}",
    )


def _ascii(name: str) -> str:
    try:
        return name if name.isascii() else name.encode("idna").decode()
    except UnicodeError:  # nobody has such a name
        return name.encode("ascii", "backslashreplace").decode()


def _request(origin: Origin, site: _Site, path: str) -> bytes:
    key = f"Authorization: Bearer {origin.key}\r\n" if origin.key is not None else ""
    close = "" if origin.keep_alive else "Connection: close\r\n"
    return f"GET {path} HTTP/1.1\r\nHost: {site.host}\r\n{_HEADERS}{key}{close}\r\n".encode("latin-1")


def _bare(path: str) -> str:
    return path.partition("?")[0]


def _trust(ca_file: Path | None) -> ssl.SSLContext:
    """Answer whom to trust: the system's authorities, or those of a file, read again when it changes."""
    try:
        return _context(ca_file, version(ca_file) if ca_file else None)
    except (OSError, ValueError) as error:  # an ssl.SSLError is an OSError
        raise ScrapeError(Reason.TLS, f"ca_file {ca_file} cannot be used: {type(error).__name__}") from None


@lru_cache(maxsize=64)
def _context(ca_file: Path | None, _version: Version | None) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file)


def _target(response: Response, asked: str) -> tuple[_Site, str]:
    """Answer the site and the path of a redirect."""
    try:
        url = urlsplit(urljoin(asked, response.headers["location"]))
        path = quote(f"{url.path or '/'}{'?' * bool(url.query)}{url.query}", safe=_IN_PATHS)
        return _site(f"{url.scheme}://{url.netloc.rpartition('@')[2].lower()}"), path
    except (ValueError, KeyError):
        raise ScrapeError(
            Reason.REDIRECT, f"status {response.status} without a usable Location", status=response.status
        ) from None


async def _read(response: Response, origin: Origin, path: str, limit: int) -> Answer:
    if response.status != HTTPStatus.OK:
        answered = f"{_bare(path)} answered status {response.status}"
        if response.status not in {401, 403}:
            hint = ": it wants https, write so in url" if _wants_https(response) else ""
            raise ScrapeError(Reason.STATUS, f"{answered}{hint}", status=response.status)
        has_key = origin.key is not None
        remedy = "it refuses the key in api_key_file" if has_key else "it needs a key: name its file in api_key_file"
        raise ScrapeError(Reason.AUTH, f"{answered}: {remedy}", status=response.status)
    body = await unpacked(response.body, response.headers.get("content-encoding", "").lower(), limit)
    return Answer(body=body, content_type=response.headers.get("content-type", ""), framed=response.framed)


def _wants_https(response: Response) -> bool:
    """Tell whether this is what servers of https (Go, nginx, Apache) say in plain HTTP to who speaks that."""
    return response.status == HTTPStatus.BAD_REQUEST and any(word in response.body for word in _ABOUT_HTTPS)


def _unanswered(error: ExchangeError, path: str, limit: int, origin: Origin) -> ScrapeError:
    """Say why a connection gave no response; what the engine sent may hold anything, so we write our own words."""
    match error:
        case ClosedError(cause=ssl.SSLError() as cause):
            return tls_error(cause)
        case ClosedError():
            hint = _CLOSES_TOO[origin.url.partition(":")[0]] if error.is_unanswered else ""
            return ScrapeError(Reason.RESET, f"the connection was closed before {path} was answered{hint}")
        case CutError():
            return ScrapeError(Reason.INCOMPLETE, f"the connection ended in the middle of {path}")
        case OversizeError():
            return oversize(limit)
    return ScrapeError(Reason.PARSE, f"{path} was not answered in HTTP: {error}")


def _unreachable(error: UnreachableError, place: Place) -> ScrapeError:
    """Say why there is no connection."""
    address, cause = f"{place.host}:{place.port}", error.cause
    if isinstance(cause, ssl.SSLError):
        return tls_error(cause)
    if error.in_handshake:
        return ScrapeError(Reason.RESET, f"{address} closed the connection in the TLS handshake: does it speak https?")
    number = getattr(cause, "errno", None) or 0
    why = os.strerror(number) if number > 0 else "its addresses fail, each in another way"
    reason = _NOT_REACHED.get(number, Reason.REFUSED)
    return ScrapeError(reason, f"no connection to {address}: {why}")
