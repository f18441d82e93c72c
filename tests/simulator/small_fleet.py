"""A fleet of quick replicas on free ports, run inside the test's own event loop."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import ClientSession, web

from simulator.config import parse_fleet
from simulator.fleet import FleetServer

Json = Any  # what a parsed body is, and what aiohttp takes as keywords
CHAT = {"messages": [{"role": "user", "content": "hello there"}], "max_tokens": 5}


def document(**model: object) -> dict[str, Any]:
    """Describe one replica of each engine; `model` changes both models."""
    quick = {
        "max_model_len": 512,
        "slots": 4,
        "step": {"base": "2ms", "per_sequence": "0.1ms", "per_prefill_token": "0.01ms", "prefill_tokens": 256},
        "loading": "200ms",
        "answer_tokens": 20,
        **model,
    }
    return {
        "models": {"qwen": {"engine": "vllm", **quick}, "llama": {"engine": "llama-server", **quick}},
        "replicas": [{"name": "v", "model": "qwen", "port": 0}, {"name": "l", "model": "llama", "port": 0}],
    }


class Running:
    """A running fleet, its control API and a client."""

    def __init__(self, server: FleetServer, control: str, session: ClientSession) -> None:
        self.server = server
        self.control = control
        self.session = session

    def url(self, replica: str) -> str:
        port = self.server.replicas[replica].port
        return f"http://{port.host}:{port.number}"

    async def get(self, replica: str, path: str, **more: Json) -> tuple[int, str]:
        async with self.session.get(self.url(replica) + path, **more) as answer:
            return answer.status, await answer.text()

    async def post(
        self, replica: str, body: object, path: str = "/v1/chat/completions", **more: Json
    ) -> tuple[int, str]:
        async with self.session.post(self.url(replica) + path, json=body, **more) as answer:
            return answer.status, await answer.text()

    async def metric(self, replica: str, prefix: str) -> float:
        """Add up every series of the page that begins so."""
        _, page = await self.get(replica, "/metrics")
        found = [float(line.rpartition(" ")[2]) for line in page.splitlines() if line.startswith(prefix)]
        assert found, f"no series {prefix} on the page"
        return sum(found)

    async def control_call(self, method: str, path: str, body: object = None) -> tuple[int, Json]:
        async with self.session.request(method, self.control + path, json=body) as answer:
            return answer.status, await answer.json()

    async def give(self, replica: str, fault: str, **values: object) -> None:
        status, answer = await self.control_call("PUT", f"/replicas/{replica}/faults/{fault}", values)
        assert status == 200, answer


@asynccontextmanager
async def running(**model: object) -> AsyncIterator[Running]:
    """Run the fleet for a while."""
    server = FleetServer(parse_fleet(document(**model), "test"), "127.0.0.1")
    await server.start()
    runner = web.AppRunner(server.application(), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        async with ClientSession() as session:
            host, port = runner.addresses[0][:2]
            yield Running(server, f"http://{host}:{port}", session)
    finally:
        await server.stop()
        await runner.cleanup()
