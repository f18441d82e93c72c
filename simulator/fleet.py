"""The whole fleet in one process, and the control API that breaks and heals it."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from simulator.config import Fleet
from simulator.faults import KINDS, FaultError
from simulator.fields import parse_seconds
from simulator.replica import Replica

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_EVERYWHERE = "0.0.0.0"  # noqa: S104 - compared, not bound


class FleetServer:
    """Runs the replicas and answers the control API."""

    def __init__(self, fleet: Fleet, host: str) -> None:
        self.replicas: dict[str, Replica] = {}
        with contextlib.ExitStack() as ports:  # when one port is taken, the others are given back
            for spec in fleet.replicas:
                replica = self.replicas[spec.name] = Replica(spec, host)
                ports.callback(replica.port.close)
            ports.pop_all()

    async def start(self, *, loading: float | None = 0) -> None:
        """Start every replica; by default at once, without loading."""
        await asyncio.gather(*(replica.start(loading=loading) for replica in self.replicas.values()))

    async def stop(self) -> None:
        """End every replica."""
        await asyncio.gather(*(replica.stop() for replica in self.replicas.values()))

    def application(self) -> web.Application:
        """Make the control API."""
        app = web.Application(middlewares=[_sentences])
        app.router.add_get("/", self._overview)
        app.router.add_get("/-/healthy", self._healthy)
        app.router.add_put("/replicas/{name}/faults/{fault}", self._break)
        app.router.add_delete("/replicas/{name}/faults/{fault}", self._heal)
        app.router.add_delete("/replicas/{name}/faults", self._heal_all)
        app.router.add_post("/replicas/{name}/restart", self._restart)
        return app

    def describe(self, host: str) -> dict[str, Any]:
        """Give names, addresses as seen from who calls us `host`, states and faults."""
        return {
            "replicas": [_describe(replica, host) for replica in self.replicas.values()],
            "faults": {kind.name: kind.help for kind in KINDS.values()},
        }

    def lines(self) -> list[str]:
        """Describe each replica in a line."""
        return [_line(replica) for replica in self.replicas.values()]

    async def _overview(self, request: web.Request) -> web.Response:
        if "text/html" in request.headers.get("Accept", "") or "text/plain" in request.headers.get("Accept", ""):
            return web.Response(text="\n".join(self.lines()) + "\n")
        return web.json_response(self.describe(_host(request)))

    async def _healthy(self, _request: web.Request) -> web.Response:
        return web.Response(text="The simulator is healthy.\n")

    async def _break(self, request: web.Request) -> web.Response:
        replica = self._named(request)
        values = await _parameters(request)
        await replica.give(request.match_info["fault"], values, seconds=_for_seconds(request))
        return web.json_response(_describe(replica, _host(request)))

    async def _heal(self, request: web.Request) -> web.Response:
        replica = self._named(request)
        await replica.heal(request.match_info["fault"])
        return web.json_response(_describe(replica, _host(request)))

    async def _heal_all(self, request: web.Request) -> web.Response:
        replica = self._named(request)
        for fault in tuple(replica.faults):
            await replica.heal(fault)
        return web.json_response(_describe(replica, _host(request)))

    async def _restart(self, request: web.Request) -> web.Response:
        replica = self._named(request)
        await replica.restart()
        return web.json_response(_describe(replica, _host(request)))

    def _named(self, request: web.Request) -> Replica:
        name = request.match_info["name"]
        if name not in self.replicas:
            raise _RefusedError(404, f"there is no replica {name!r}; there are {', '.join(self.replicas)}")
        return self.replicas[name]


def _host(request: web.Request) -> str:
    return request.url.host or _EVERYWHERE


class _RefusedError(Exception):
    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@web.middleware
async def _sentences(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except _RefusedError as refusal:
        return web.json_response({"error": str(refusal)}, status=refusal.status)
    except FaultError as error:
        return web.json_response({"error": str(error)}, status=404 if "there is no fault" in str(error) else 400)
    except web.HTTPNotFound:
        paths = "GET /, PUT or DELETE /replicas/NAME/faults/FAULT, POST /replicas/NAME/restart"
        return web.json_response({"error": f"nothing here; there are {paths}"}, status=404)


async def _parameters(request: web.Request) -> dict[str, object]:
    body = await request.read()
    if not body.strip():
        return {}
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _RefusedError(400, f"the parameters are not JSON: {error}") from error
    if not isinstance(document, dict):
        raise _RefusedError(400, f"the parameters must be a JSON object, got {document!r}")
    return document


def _for_seconds(request: web.Request) -> float | None:
    text = request.query.get("for")
    if text is None:
        return None
    seconds = parse_seconds(text if text[-1:].isalpha() else f"{text}s")
    if not seconds:
        raise _RefusedError(400, f"for: expected seconds above zero, or a duration such as 30s or 2m, got {text!r}")
    return seconds


def _describe(replica: Replica, host: str) -> dict[str, object]:
    spec = replica.spec
    faults = {
        name: {
            **fault.values,
            **({"heals_in": round(left, 1)} if (left := replica.remaining(name)) is not None else {}),
        }
        for name, fault in replica.faults.items()
    }
    return {
        "name": spec.name,
        "model": spec.model.name,
        "engine": spec.model.engine.value,
        "url": f"http://{host if replica.port.host == _EVERYWHERE else replica.port.host}:{replica.port.number}",
        "state": replica.state.value,
        "faults": faults,
    }


def _line(replica: Replica) -> str:
    faults = ", ".join(replica.faults) or "no fault"
    where = f"{replica.port.host}:{replica.port.number}"
    return f"{replica.spec.name:<12} {replica.model.name:<16} {where:<21} {replica.state.value:<8} {faults}"
