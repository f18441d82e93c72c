"""Unpack: a body as it was sent -> as it is, or ScrapeError. Nobody asked for compression, and some send it."""

import zlib
from asyncio import sleep

from exporter.failures import Reason, ScrapeError

__all__ = ["oversize", "unpacked"]

_PIECE = 2**16  # bytes that are given to be unpacked at once
_STEP = 2**18  # bytes that are unpacked at once


def oversize(limit: int) -> ScrapeError:
    """Say that a body is too large."""
    return ScrapeError(Reason.SIZE, f"the body is larger than {limit // 2**20} MiB")


async def unpacked(body: bytes, encoding: str, limit: int) -> bytes:
    """Decode a body; the limit holds for what was decoded, so a compressed bomb ends early."""
    if encoding in {"", "identity"}:
        return body
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise ScrapeError(Reason.ENCODING, f"Content-Encoding {encoding[:40]!r} was not asked for and cannot be read")
    decoder = _decoder()
    parts: list[bytes] = []
    size = 0
    for start in range(0, len(body), _PIECE):
        data = body[start : start + _PIECE]
        while data:
            if decoder.eof:
                decoder = _decoder()  # gzip may come in several members, which together are the body
            part = decoder.decompress(data, min(_STEP, limit + 1 - size))
            parts.append(part)
            size += len(part)
            if size > limit:
                raise oversize(limit)
            data = decoder.unused_data or decoder.unconsumed_tail  # a copy, hence pieces
            await sleep(0)  # a few bytes may unpack to megabytes; others get a turn in between
    if not decoder.eof:
        raise ScrapeError(Reason.INCOMPLETE, "the compressed body is cut")
    return b"".join(parts)


def _decoder() -> "zlib._Decompress":
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # 32: take zlib's header or gzip's
