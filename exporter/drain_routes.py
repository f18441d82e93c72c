"""Drain routes: the drain marker over HTTP. In: PUT, DELETE, GET of /drain. Out: JSON, or a sentence what is wrong."""

import json
import logging
import time
from datetime import timedelta
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from exporter.admin import RefusedError
from exporter.document import FleetError, Node
from exporter.drain import LONGEST, Drain
from exporter.service import Service

__all__ = ["add_drain_routes"]

_log = logging.getLogger(__name__)
_LONGEST_TEXT = f"{LONGEST // timedelta(hours=1)}h"


def add_drain_routes(application: FastAPI) -> None:
    """Add the routes to an application whose state has a service."""
    application.add_api_route("/drain", _all, methods=["GET", "HEAD"])
    application.add_api_route("/drain/{name}", _mark, methods=["PUT"])
    application.add_api_route("/drain/{name}", _unmark, methods=["DELETE"])


async def _all(request: Request) -> Response:
    service = _service(request)
    return JSONResponse(
        [_shown(name, drain) for name, drain in service.drains.all().items() if name in service.watches]
    )


async def _mark(request: Request, name: str) -> Response:
    refusal = _refusal(request, name)
    if refusal is not None:
        return refusal
    try:
        ttl = _ttl(request.query_params.getlist("ttl"), await request.body())
    except FleetError as error:
        return PlainTextResponse(f"{error}\n", status_code=400)
    drain, kept = await _service(request).drains.mark(name, ttl, _who(request))
    return JSONResponse({**_shown(name, drain), "survives_restart": kept})


async def _unmark(request: Request, name: str) -> Response:
    refusal = _refusal(request, name)
    if refusal is not None:
        return refusal
    was = await _service(request).drains.unmark(name, _who(request))
    return JSONResponse({"replica": name, "was_draining": was})


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def _refusal(request: Request, name: str) -> Response | None:
    """Answer a request that may not change anything, or names no replica of ours."""
    service = _service(request)
    try:
        service.admin.demand(request.headers.get("authorization"))
    except RefusedError as refused:
        _log.warning("%s %r by %s refused: %s", request.method, request.url.path, _who(request), refused)
        headers = {"WWW-Authenticate": "Bearer"} if refused.status == 401 else None  # noqa: PLR2004 - Unauthorized
        return PlainTextResponse(f"{refused}\n", status_code=refused.status, headers=headers)
    unknown = service.why_not_here(name)
    return PlainTextResponse(f"{unknown}\n", status_code=404) if unknown else None


def _ttl(asked: list[str], body: bytes) -> timedelta:
    """Read for how long, from the query or a JSON body; raise FleetError with a sentence."""
    given: list[Any] = [*asked, *_body_ttl(body)]
    if len(given) != 1:
        got = "none" if not given else f"{len(given)} of them"
        raise FleetError(f"ttl: say once for how long, such as ?ttl=30m, up to {_LONGEST_TEXT}; got {got}")
    ttl = Node(value=given[0], file="ttl").duration()
    if ttl > LONGEST:
        raise FleetError(f"ttl: expected at most {_LONGEST_TEXT}, got {given[0]!r}; mark it again if it takes longer")
    return ttl


def _body_ttl(body: bytes) -> list[Any]:
    if not body.strip():
        return []
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or content.keys() != {"ttl"}:
        raise FleetError('body: expected JSON such as {"ttl": "30m"}, or no body and ?ttl=30m')
    return [content["ttl"]]


def _who(request: Request) -> str:
    return request.client.host if request.client else "a local socket"


def _shown(name: str, drain: Drain) -> dict[str, Any]:
    left = max(0, round(drain.until - time.time()))
    return {"replica": name, "until": drain.end, "seconds_left": left, "by": drain.by}
