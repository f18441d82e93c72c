"""The sick side: one process that is hundreds of replicas which accept connections and then hang, drip or flood.

In: how many of each. Out: their ports, as one line of JSON by kind.
"""

import argparse
import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from itertools import count

__all__ = ["KINDS"]

Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
_SERIES = 30_000
_HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n"
_unique = count()


async def _hang(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Read whatever comes, say nothing."""
    await reader.read()


async def _drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Promise a page, and give a byte of it a second."""
    writer.write(_HEAD.format(50_000).encode())
    while True:
        await asyncio.sleep(1)
        writer.write(b"#")
        await writer.drain()


async def _flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer a page of series that nobody has seen before, each time."""
    while await reader.readuntil(b"\r\n\r\n"):
        scrape = next(_unique)
        lines = [f'vllm:num_requests_running{{model_name="m{scrape}-{at}"}} 1.0' for at in range(_SERIES)]
        body = "\n".join([*lines, ""]).encode()
        writer.write(_HEAD.format(len(body)).encode() + body)
        await writer.drain()


KINDS: dict[str, Behaviour] = {"hanging": _hang, "dripping": _drip, "flooding": _flood}


def _served(behaviour: Behaviour) -> Behaviour:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await behaviour(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    return serve


async def _serve(wanted: dict[str, int]) -> None:
    ports: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for kind, number in wanted.items():
        for _ in range(number):
            listening = socket.create_server(("127.0.0.1", 0), backlog=16)
            await asyncio.start_server(_served(KINDS[kind]), sock=listening)
            ports[kind].append(listening.getsockname()[1])
    print(json.dumps(ports), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.rig.sick", description=__doc__)
    for each in KINDS:
        parser.add_argument(f"--{each}", type=int, default=0, metavar="N")
    asyncio.run(_serve(vars(parser.parse_args())))
