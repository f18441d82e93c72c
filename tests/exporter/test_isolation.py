"""No replica waits for another: huge pages, names that cannot be looked up, hundreds that hang or drip."""

import asyncio
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import cast

import aiodns

from exporter.failures import Reason, ScrapeError, State
from exporter.fleet import Fleet, Replica
from exporter.parse import MOST_LINES
from exporter.scrape import BODY_LIMIT, Answer, Origin, Scraper
from exporter.service import Options, Service
from exporter.watch import Outcome, Watch
from tests.exporter.pages import served
from tests.exporter.sockets import PAGE, answer, engine, look

HANGING, DRIPPING, WELL = 300, 100, 600
NAMES = 100  # twenty times the threads of an event loop's pool
A_RECORD, IN = 1, 1


@asynccontextmanager
async def fleet_of(**urls: str) -> AsyncIterator[Service]:
    """Watch several replicas; each probe is a scrape."""
    replicas = tuple(Replica(name=name, url=url, model="m", engine="vllm") for name, url in urls.items())
    service = Service(Options(fleet=Path("fleet.yml"), min_interval=0.0), Fleet(replicas=replicas))
    try:
        yield service
    finally:
        service.abandon()
        await service.close()


async def seconds(work: Awaitable[object]) -> float:
    start = time.perf_counter()
    await work
    return time.perf_counter() - start


def huge(lines: int) -> bytes:
    """Make a page of so many lines, just below the limit of bytes; every line is new to the parser."""
    size = (BODY_LIMIT - len(PAGE)) // lines
    line = b'vllm:unheard_of_total{engine="0",model_name="tiny",request="%08d%s"} 1.0\n'
    padding = b"x" * (size - len(line % (0, b"")))
    return PAGE + b"".join(line % (number, padding) for number in range(lines))


def test_a_huge_page_does_not_delay_a_healthy_replica() -> None:
    async def scenario(large: str) -> tuple[float, list[float], Outcome]:
        async with (
            engine(answer()) as well,
            fleet_of(large=f"http://{large}", well=f"http://{well}") as service,
        ):
            healthy, hostile = service.watches["well"], service.watches["large"]
            await service.look(healthy, 5)
            alone = median([await seconds(service.look(healthy, 5)) for _ in range(20)])
            reading = asyncio.create_task(service.look(hostile, 60))
            beside = []
            while not reading.done():
                beside.append(await seconds(service.look(healthy, 5)))
            return alone, beside, await reading

    with served({"/metrics": huge(MOST_LINES - 1000)}) as large:
        alone, beside, outcome = asyncio.run(scenario(large))
    assert outcome.up, "the page can be read, only slowly"
    assert median(beside) < alone + 0.1
    assert max(beside) < alone + outcome.duration / 3, "whatever holds everybody up is a small part of the reading"


def test_a_page_of_hundreds_of_thousands_of_lines_is_refused() -> None:
    outcome = look(answer(body=huge(200_000)))
    assert (outcome.up, outcome.state) == (False, State.BROKEN)
    assert outcome.sentence == "the page has more than 50000 lines: do its labels grow without limit?"
    assert 'llm_replica_scrape_errors_total{reason="size"} 1.0' in outcome.page


async def hang(_request: bytes, _writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def drip(_request: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100000\r\n\r\n")
    while True:
        writer.write(b"#")
        await asyncio.sleep(0.1)


def test_hundreds_that_hang_or_drip_do_not_delay_the_others() -> None:
    async def scenario() -> tuple[float, float]:
        async with (
            engine(hang) as hanging,
            engine(drip) as dripping,
            engine(answer()) as well,
            fleet_of(
                **{f"hanging-{number}": f"http://{hanging}" for number in range(HANGING)},
                **{f"dripping-{number}": f"http://{dripping}" for number in range(DRIPPING)},
                **{f"well-{number}": f"http://{well}" for number in range(WELL)},
            ) as service,
        ):
            healthy = [watch for name, watch in service.watches.items() if name.startswith("well")]
            others = [watch for name, watch in service.watches.items() if not name.startswith("well")]
            await seconds(round_of(service, healthy))
            alone = min([await seconds(round_of(service, healthy)) for _ in range(3)])
            bad = [asyncio.create_task(service.look(watch, 8)) for watch in others]
            await asyncio.sleep(0.5)
            beside = min([await seconds(round_of(service, healthy)) for _ in range(3)])
            assert not any(task.done() for task in bad), "they hung for as long as it was measured"
            for task in bad:
                task.cancel()
            return alone, beside

    alone, beside = asyncio.run(scenario())
    assert beside < 1.5 * alone + 0.2


async def round_of(service: Service, watches: list[Watch]) -> None:
    for watch in watches:
        assert (await service.look(watch, 5)).up


class HangingNameserver(asyncio.DatagramProtocol):
    """A nameserver that knows one name and never says anything about any other."""

    def __init__(self) -> None:
        self.is_asked_for_all = asyncio.Event()
        self._ignored: set[bytes] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        question, name, kind = _question(data)
        if not name.startswith(b"\x04well"):
            self._ignored.add(name)
            if len(self._ignored) == NAMES:
                self.is_asked_for_all.set()
            return
        answers = 1 if kind == A_RECORD else 0
        head = data[:2] + struct.pack(">HHHHH", 0x8180, 1, answers, 0, 0)
        record = b"\xc0\x0c" + struct.pack(">HHIH", A_RECORD, IN, 1, 4) + socket.inet_aton("127.0.0.1")
        self._transport.sendto(head + question + record * answers, address)


def _question(data: bytes) -> tuple[bytes, bytes, int]:
    end = data.index(b"\0", 12) + 5
    kind: int = struct.unpack(">H", data[end - 4 : end - 2])[0]
    return data[12:end], data[12 : end - 4], kind


def test_names_that_cannot_be_looked_up_do_not_starve_the_others() -> None:
    async def scenario() -> tuple[Answer, float, list[Answer | BaseException]]:
        loop = asyncio.get_running_loop()
        transport, nameserver = await loop.create_datagram_endpoint(HangingNameserver, local_addr=("127.0.0.1", 0))
        port = transport.get_extra_info("sockname")[1]
        scraper = Scraper(lambda: aiodns.DNSResolver(nameservers=["127.0.0.1"], udp_port=port, timeout=5, tries=1))
        async with engine(answer()) as address:
            to = address.rpartition(":")[2]
            until = loop.time() + 4
            stuck = [
                asyncio.create_task(scraper.get(Origin(url=f"http://hangs-{number}.test:{to}"), "/metrics", until))
                for number in range(NAMES)
            ]
            await asyncio.wait_for(nameserver.is_asked_for_all.wait(), 3)
            start = time.perf_counter()
            page = await scraper.get(Origin(url=f"http://well.test:{to}"), "/metrics", until)
            took = time.perf_counter() - start
            errors = await asyncio.gather(*stuck, return_exceptions=True)
        await scraper.close()
        transport.close()
        return page, took, errors

    page, took, errors = asyncio.run(scenario())
    assert page.body == PAGE
    assert took < 1.0
    assert all(isinstance(error, ScrapeError) and error.reason is Reason.TIMEOUT for error in errors)
