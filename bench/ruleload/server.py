"""Server: the exporter side of a large fleet. In: sizes and a port. Out: /targets and /probe, as the exporter has them.

`python -m bench.ruleload.server PORT REPLICAS MODELS`. A page is written once per model and second.
"""

import asyncio
import json
import sys
import time
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

from bench.ruleload.fleet import fleet
from bench.ruleload.pages import page, samples
from exporter.fleet import Fleet

__all__ = ["INSTANCE"]

INSTANCE = "replica:8000"
"""The address that every replica shows; their names differ."""


class _Pages:
    """Answers requests for a fleet."""

    def __init__(self, watched: Fleet, address: str) -> None:
        models = sorted({str(replica.model) for replica in watched.replicas})
        shown = {model: samples(watched.slos, model) for model in models}
        self._page = lru_cache(maxsize=2 * len(models))(lambda model, second: page(shown[model], second))
        self._model = {replica.name: str(replica.model) for replica in watched.replicas}
        self._targets = json.dumps([_target(address, replica.name) for replica in watched.replicas]).encode()

    def answer(self, target: str) -> tuple[str, bytes]:
        """Return content type and body for a request target."""
        url = urlsplit(target)
        if url.path == "/targets":
            return "application/json", self._targets
        if url.path == "/probe":
            model = self._model[parse_qs(url.query)["target"][0]]
            return "text/plain; version=0.0.4", self._page(model, int(time.time()))
        return ("application/json", b"[]") if url.path.endswith("targets") else ("text/plain; version=0.0.4", b"")


def _target(address: str, name: str) -> dict[str, Any]:
    labels = {"__metrics_path__": "/probe", "__param_target": name, "replica": name, "instance": INSTANCE}
    return {"targets": [address], "labels": {**labels, "engine": "vllm"}}


async def _serve(port: int, replicas: int, models: int) -> None:
    pages = _Pages(fleet(replicas, models), f"127.0.0.1:{port}")

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while request := await reader.readline():
            while (await reader.readline()).strip():
                pass
            kind, body = pages.answer(request.split()[1].decode())
            head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(connected, "127.0.0.1", port) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(*map(int, sys.argv[1:4])))
