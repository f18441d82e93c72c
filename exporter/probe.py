"""Probe: the one endpoint that is asked a hundred times a second. In: ASGI requests. Out: pages of replicas.

Plain ASGI, since what FastAPI does for an endpoint costs as much as parsing a page; bench/probe.py shows it. Probes as
Prometheus writes them do not even come this far, where nobody has to be let in first (exporter/front.py).
"""

from http import HTTPStatus
from math import isfinite
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from exporter.expose import CONTENT_TYPE
from exporter.watch import AbandonedError

if TYPE_CHECKING:
    from exporter.service import Service

__all__ = ["LONGEST", "TIMEOUT", "Probe", "budget"]

LONGEST = 60.0  # seconds; no reader may keep a scrape open for longer
TIMEOUT = "x-prometheus-scrape-timeout-seconds"


class Probe:
    """Answers `/probe?target=NAME`."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        service: Service = scope["app"].state.service
        name = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)).get("target")
        watch = None if name is None else service.watches.get(name)
        if watch is None:
            await _refusal(service, name)(scope, receive, send)
            return
        try:
            outcome = await service.look(watch, budget(Headers(scope=scope).get(TIMEOUT), service.options.timeout))
        except AbandonedError as error:
            await PlainTextResponse(f"{error}\n", status_code=503)(scope, receive, send)
            return
        page = outcome.page.encode()
        headers = [(b"content-type", CONTENT_TYPE.encode()), (b"content-length", str(len(page)).encode())]
        await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": headers})
        await send({"type": "http.response.body", "body": page})


def _refusal(service: "Service", name: str | None) -> Response:
    if name is None:
        return PlainTextResponse("Name a replica: /probe?target=NAME. The names are on /targets.\n", status_code=400)
    return PlainTextResponse(f"{service.why_not_here(name)}\n", status_code=404)


def budget(header: str | None, default: float) -> float:
    """Answer the seconds a scrape may take: what Prometheus waits, less a margin for the way back."""
    try:
        wanted = float(header) if header is not None else default
    except ValueError:
        wanted = default
    if not (isfinite(wanted) and wanted > 0):
        wanted = default
    wanted = min(wanted, LONGEST)
    return wanted - min(0.5, 0.2 * wanted)
