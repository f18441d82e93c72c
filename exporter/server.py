"""Server: the exporter's HTTP surface. In: requests of Prometheus and people. Out: pages of the service behind it."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from exporter.basic_auth import BasicAuth
from exporter.drain_routes import add_drain_routes
from exporter.expose import CONTENT_TYPE
from exporter.fleet import Fleet, FleetError
from exporter.handbook import handbook_page, handbook_picture
from exporter.landing import landing
from exporter.probe import Probe, budget
from exporter.service import RUNBOOKS, Options, Service
from exporter.upkeep import Upkeep
from exporter.watch import AbandonedError
from exporter.web import Web

__all__ = ["app"]

_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'",
    "Cache-Control": "no-store",
}
_PICTURE_HEADERS = {"Cache-Control": "private, max-age=3600", "X-Content-Type-Options": "nosniff"}


def app(options: Options, fleet: Fleet, web: Web | None = None) -> FastAPI:
    """Build the application; connections open and close with its lifespan."""

    @asynccontextmanager
    async def lifespan(served: FastAPI) -> AsyncIterator[None]:
        service = served.state.service = Service(options, fleet)
        upkeep = Upkeep(service, web)
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, upkeep.reload_now)
        yield
        await upkeep.close()
        await service.close()

    application = FastAPI(
        title="Servewatch exporter",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # asked for at every request, needed by nobody
    )
    application.state.is_guarded = web is not None
    # First in the list, since routes are tried in turn.
    for path in ("/probe", "/probe/"):
        application.router.routes.append(Route(path, Probe(), methods=["GET", "HEAD"]))
    for path, endpoint in (
        ("/targets", _targets),
        ("/gpu", _gpu),
        ("/gpu/targets", _gpu_targets),
        ("/metrics", _metrics),
        ("/-/healthy", _healthy),
        ("/-/ready", _ready),
    ):
        application.add_api_route(path, endpoint, methods=["GET", "HEAD"])
        application.add_api_route(f"{path}/", endpoint, methods=["GET", "HEAD"])
    application.add_api_route("/", _landing, methods=["GET", "HEAD"])
    application.add_api_route("/runbooks/", _runbooks, methods=["GET", "HEAD"])
    application.add_api_route("/runbooks/{name}", _runbook, methods=["GET", "HEAD"])
    application.add_api_route("/runbooks/pictures/{name}", _picture, methods=["GET", "HEAD"])
    add_drain_routes(application)
    if web is not None:
        application.add_middleware(BasicAuth, web=web)
    application.add_api_route("/-/reload", _reload, methods=["POST", "PUT"])
    return application


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _targets(request: Request) -> Response:
    return JSONResponse(_service(request).targets(_address(request), request.url.scheme))


async def _gpu_targets(request: Request) -> Response:
    return JSONResponse(_service(request).gpu_targets(_address(request), request.url.scheme))


def _address(request: Request) -> str:
    return request.headers.get("host") or ":".join(map(str, request.scope["server"]))


async def _gpu(request: Request) -> Response:
    try:
        page = await _service(request).gpus.page(_budget(request))
    except AbandonedError as error:
        return PlainTextResponse(f"{error}\n", status_code=503)
    return Response(page.encode(), headers={"Content-Type": CONTENT_TYPE})


def _budget(request: Request) -> float:
    return budget(request.headers.get("x-prometheus-scrape-timeout-seconds"), _service(request).options.timeout)


async def _metrics(request: Request) -> Response:
    service = _service(request)
    return Response(
        service.telemetry.page(service.fleet, service.models()).encode(), headers={"Content-Type": CONTENT_TYPE}
    )


async def _healthy() -> Response:
    return PlainTextResponse("Servewatch exporter is healthy.\n")


async def _ready() -> Response:
    return PlainTextResponse("Servewatch exporter is ready.\n")


async def _reload(request: Request) -> Response:
    try:
        await _service(request).reload()
    except FleetError as error:
        return PlainTextResponse(f"{error}\nThe fleet in use stays as it was.\n", status_code=400)
    return PlainTextResponse("Fleet reloaded.\n")


async def _landing(request: Request) -> Response:
    return Response(landing(_service(request)), media_type="text/html", headers=_PAGE_HEADERS)


async def _runbooks(request: Request) -> Response:
    return _handbook_response(request, "README")


async def _runbook(request: Request, name: str) -> Response:
    return _handbook_response(request, name)


async def _picture(name: str) -> Response:
    # Those of the checkout: no fleet changes them, so generate.py writes none.
    picture = handbook_picture(RUNBOOKS, name)
    if picture is None:
        return PlainTextResponse(f"No picture is named {name[:80]!a}.\n", status_code=404)
    return Response(picture, media_type="image/png", headers=_PICTURE_HEADERS)


def _handbook_response(request: Request, name: str) -> Response:
    # Procedures have no facts, so they are never written anew.
    page = handbook_page(_service(request).options.runbooks, name) or handbook_page(RUNBOOKS, name)
    if page is None:
        return PlainTextResponse(f"No runbook is named {name[:80]!a}; see /runbooks/.\n", status_code=404)
    return Response(page, media_type="text/html", headers=_PAGE_HEADERS)
