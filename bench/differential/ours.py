"""What our parser makes of a page, and the page less the exceptions on purpose, which Prometheus must read alike."""

import re
import traceback
from dataclasses import dataclass

from bench.differential.exposition import Exposition, Verdict, bits
from exporter.failures import ScrapeError
from exporter.parse import Page, Parser

__all__ = ["DROPPED", "LONGEST_SAMPLE", "OurReader", "Plain", "plain"]

DROPPED = "unusable sample dropped"
LONGEST_SAMPLE = 6  # lines; a label value may hold line breaks

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CRLF = re.compile(rb"\r+\n")
_FROM_3 = {
    "exemplar after any sample, as from 3.0": re.compile(
        rb"(?m)^((?!\w*(?:_total|_bucket)\b)[a-zA-Z_:][^#\n]*(?:\{.*\})?[^#\n]*?) # \{.*$"
    ),
    "comma after the last label, as from 3.0": re.compile(rb'((?<!\\)(?:\\\\)*"),(?=\})'),
}
"""What 2.42 refuses in OpenMetrics and we take, as 3.x does."""


class OurReader:
    """Our parser, as the exporter holds it: one for all pages, which remembers what it has seen."""

    def __init__(self) -> None:
        self._parser = Parser()

    def read(self, page: Exposition) -> Verdict:
        """Answer our verdict; what the parser remembers of other pages must not change it."""
        remembering, fresh = _verdict(self._parser, page), _verdict(Parser(), page)
        if remembering != fresh:
            return Verdict(accepted=False, fault=f"read as {remembering} after other pages, as {fresh} alone")
        return fresh


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """A page without what we take on purpose and Prometheus does not, and the names of what was taken out."""

    page: Exposition
    exceptions: tuple[str, ...]


def plain(page: Exposition, *, from_3: bool) -> Plain | None:
    """Undo the exceptions on purpose; None if there are none, so that the page itself is what Prometheus must judge.

    `from_3` tells that this is to be judged by Prometheus 3.0 or later, to which we are no exception in OpenMetrics.
    """
    body, exceptions = page.body, []
    if body.startswith(_BYTE_ORDER_MARK):
        body = body.removeprefix(_BYTE_ORDER_MARK)
        exceptions.append("byte-order mark")
    if b"\r\n" in body:
        body = _CRLF.sub(b"\n", body)
        exceptions.append("CRLF")
    parsed = _parsed(body, openmetrics=page.openmetrics)
    for name, pattern in _FROM_3.items() if page.openmetrics and parsed and not from_3 else ():
        if pattern.search(body):
            body = pattern.sub(rb"\1", body)
            exceptions.append(name)
    if parsed is not None and parsed.dropped:
        body = _without_dropped(body, parsed, openmetrics=page.openmetrics)
        exceptions.append(DROPPED)
    if not exceptions:
        return None
    return Plain(page=Exposition(body=body, openmetrics=page.openmetrics), exceptions=tuple(exceptions))


def _verdict(parser: Parser, page: Exposition) -> Verdict:
    try:
        parsed = parser.parse(page.body, openmetrics=page.openmetrics)
    except ScrapeError as error:
        return Verdict(accepted=False, why=str(error))
    except Exception:  # noqa: BLE001 - a crash, of whatever kind, is what we look for
        return Verdict(accepted=False, fault=f"crashed: {traceback.format_exc()}")
    return Verdict(
        accepted=True,
        samples={
            frozenset({**series.labels, "__name__": series.name}.items()): bits(value)
            for series, value in zip(parsed.series, parsed.values, strict=True)
        },
    )


def _parsed(body: bytes, *, openmetrics: bool) -> Page | None:
    try:
        return Parser().parse(body, openmetrics=openmetrics)
    except ScrapeError:
        return None


def _without_dropped(body: bytes, parsed: Page, *, openmetrics: bool) -> bytes:
    """Take out the lines whose absence changes nothing but the number of dropped samples."""
    lines = body.split(b"\n")
    left = parsed.dropped
    for at in reversed(range(len(lines))):
        if not left or _is_clean(lines[at], openmetrics=openmetrics):
            continue
        for taken in range(1, min(LONGEST_SAMPLE, len(lines) - at) + 1):
            shorter = lines[:at] + lines[at + taken :]
            again = _parsed(b"\n".join(shorter), openmetrics=openmetrics)
            if again is not None and again.dropped == left - 1 and _same(again, parsed):
                lines, left = shorter, left - 1
                break
    return b"\n".join(lines)


def _is_clean(line: bytes, *, openmetrics: bool) -> bool:
    """Tell whether a line alone is a page from which nothing is dropped."""
    alone = _parsed(line + b"\n# EOF" if openmetrics else line, openmetrics=openmetrics)
    return alone is not None and not alone.dropped


def _same(one: Page, other: Page) -> bool:
    identities = [[(series.name, series.labels) for series in page.series] for page in (one, other)]
    values = [[bits(value) for value in page.values] for page in (one, other)]
    return identities[0] == identities[1] and values[0] == values[1]
