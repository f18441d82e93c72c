"""Another exporter's page over real HTTP: failures are states, frozen numbers are not used, Xids are counted."""

import asyncio

import pytest

from exporter.gpu.page import PageReader
from exporter.gpu.reading import Failure, Snapshot
from exporter.gpu.sources import PAGE_SOURCES
from exporter.scrape import Scraper
from running.ports import free_port
from tests.exporter.pages import served


class Clock:
    """A clock that is moved by hand."""

    now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def dcgm(**numbers: float) -> bytes:
    return "".join(f'DCGM_FI_DEV_{name}{{UUID="GPU-a"}} {value}\n' for name, value in numbers.items()).encode()


def reads(*steps: tuple[float, bytes | None], source: str = "dcgm") -> list[Snapshot]:
    """Read a page once per step: seconds that pass before it, and what the page is then (None: as before)."""

    async def read() -> list[Snapshot]:
        clock, scraper, told = Clock(), Scraper(), []
        try:
            reader = PageReader(PAGE_SOURCES[source], f"http://{address}", scraper, clock)
            for seconds, page in steps:
                clock.now += seconds
                if page is not None:
                    pages["/metrics"] = page
                told.append(await reader.read(5))
        finally:
            await scraper.close()
        return told

    pages: dict[str, bytes] = {}
    with served(pages) as address:
        return asyncio.run(read())


def test_numbers_that_stand_still_are_used_for_a_while_only() -> None:
    told = reads((0, dcgm(GPU_TEMP=71, POWER_USAGE=300)), *[(30, None)] * 6, (30, dcgm(GPU_TEMP=71, POWER_USAGE=301)))
    assert [snapshot.failure for snapshot in told] == [None] * 6 + [Failure.STALE, None]
    assert told[6].readings == ()
    assert told[6].sentence == "no number on the page has changed for 180 s: is the service behind it gone?"


def test_a_new_xid_counts_once_and_one_that_was_there_before_does_not() -> None:
    told = reads(
        *((30, dcgm(POWER_USAGE=300 + step, XID_ERRORS=xid)) for step, xid in enumerate((13, 13, 31, 31, 79, 0, 79)))
    )
    found = [[(xid.gpu, xid.xid, xid.count) for xid in snapshot.xids] for snapshot in told]
    assert found == [[], [], [("GPU-a", 31, 1)], [], [("GPU-a", 79, 1)], [], [("GPU-a", 79, 1)]]
    assert told[2].xids[0].at == Clock.now + 90


@pytest.mark.parametrize("source", list(PAGE_SOURCES))
def test_a_page_of_something_else_is_said_to_have_no_card(source: str) -> None:
    [told] = reads((0, b"node_load1 3\n"), source=source)
    assert told == Snapshot(failure=Failure.NO_GPU, sentence=f"the page has no card in the names of {source}")


def test_a_page_of_more_cards_than_a_host_has_is_not_used() -> None:
    page = "".join(f'DCGM_FI_DEV_GPU_TEMP{{UUID="GPU-{at}"}} 40\n' for at in range(1025)).encode()
    [told] = reads((0, page))
    assert (told.failure, told.readings) == (Failure.UNUSABLE, ())


def test_a_page_that_is_no_page_is_unusable() -> None:
    [told] = reads((0, b"<html>login</html>\n"))
    assert told.failure is Failure.UNUSABLE


def test_one_bad_value_costs_one_number() -> None:
    page = b'DCGM_FI_DEV_FB_USED{UUID="GPU-a"} N/A\nDCGM_FI_DEV_GPU_TEMP{UUID="GPU-a"} 41\n'
    [told] = reads((0, page + b'dcgm_nvlink_replay_error_count_total{gpu="0"}\n'))
    assert [value.number for value in told.readings[0].values] == [41]
    assert told.dropped == 2


def test_an_exporter_that_is_not_there_is_unreachable() -> None:
    async def read() -> Snapshot:
        scraper = Scraper()
        try:
            return await PageReader(PAGE_SOURCES["dcgm"], f"http://127.0.0.1:{free_port()}", scraper).read(5)
        finally:
            await scraper.close()

    assert asyncio.run(read()).failure is Failure.UNREACHABLE
