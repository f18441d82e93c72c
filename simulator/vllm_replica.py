"""What a vLLM server has beside the OpenAI endpoints."""

from aiohttp import web

from simulator.serving import Handler, Surface

VERSION = "0.32.0"


def endpoints(surface: Surface) -> dict[str, Handler]:
    """List the GET endpoints. /health speaks for the API process: it says 200 while the engine hangs."""

    async def health(_request: web.Request) -> web.Response:
        return web.Response()

    async def version(_request: web.Request) -> web.Response:
        return web.json_response({"version": VERSION})

    del surface  # nothing here depends on the engine, which is the point of the docstring
    return {"/health": health, "/ping": health, "/version": version}
