"""Fetches as the exporter makes them: the bodies that one gets, and the requests that arrive."""

import asyncio

import uvloop

from exporter.scrape import Origin, Scraper
from tests.exporter.sockets import Behaviour, answer, engine

BODY = b"a 1\n"


def fetch(url: str, **fields: object) -> bytes:
    """Answer the body that the scraper gets."""

    async def scenario() -> bytes:
        scraper = Scraper()
        try:
            deadline = asyncio.get_running_loop().time() + 5
            return (await scraper.get(Origin(url=url, **fields), "/metrics", deadline)).body  # type: ignore[arg-type]
        finally:
            await scraper.close()

    return uvloop.run(scenario())


def asked(behaviour: Behaviour | None = None, *, host: str = "127.0.0.1", **fields: object) -> list[bytes]:
    """Answer the requests that one scrape of an engine makes."""
    requests: list[bytes] = []

    async def behave(request: bytes, writer: asyncio.StreamWriter) -> None:
        requests.append(request)
        await (behaviour or answer(body=BODY))(request, writer)

    async def scenario() -> None:
        async with engine(behave) as address:
            url = f"http://{host}:{address.rpartition(':')[2]}"
            await asyncio.to_thread(lambda: fetch(url, **fields))

    asyncio.run(scenario())
    return requests
