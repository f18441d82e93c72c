"""Another exporter's page over real HTTP: failures are states, frozen numbers are not used, Xids are counted."""

import asyncio
import math
import time

import pytest

from exporter.cards import CardPage
from exporter.gpu.page import PageReader
from exporter.gpu.reading import Failure, Snapshot
from exporter.gpu.sources import PAGE_SOURCES
from exporter.scrape import Scraper
from running.ports import free_port
from tests.exporter.pages import served


class Clock:
    """A clock that is moved by hand."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


STARTED = 1_700_000_000.0


def dcgm(**numbers: float) -> bytes:
    return "".join(f'DCGM_FI_DEV_{name}{{UUID="GPU-a"}} {value}\n' for name, value in numbers.items()).encode()


def reads(*steps: tuple[float, bytes | None], source: str = "dcgm", step_of_wall: float = 0.0) -> list[Snapshot]:
    """Read a page once per step: seconds that pass before it, and what the page is then (None: as before).

    Before each, somebody sets the wall's clock by `step_of_wall` seconds.
    """

    async def read() -> list[Snapshot]:
        clock, wall, scraper, told = Clock(17.0), Clock(STARTED), Scraper(), []
        try:
            reader = PageReader(PAGE_SOURCES[source], CardPage(url=f"http://{address}"), scraper, clock, wall)
            for seconds, page in steps:
                clock.now += seconds
                wall.now += seconds + step_of_wall
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


def test_a_number_that_is_none_does_not_move() -> None:
    told = reads((0, dcgm(GPU_TEMP=71, POWER_USAGE=math.nan)), *[(30, None)] * 6)
    assert [snapshot.failure for snapshot in told] == [None] * 6 + [Failure.STALE]


def test_a_page_of_ten_thousand_cards_holds_up_nobody() -> None:
    page = "".join(f'DCGM_FI_DEV_GPU_TEMP{{UUID="GPU-{card}"}} {card}\n' for card in range(10_000)).encode()

    async def scenario(address: str) -> tuple[Snapshot, float, float]:
        scraper, gaps = Scraper(), [0.0]
        reader = PageReader(PAGE_SOURCES["dcgm"], CardPage(url=f"http://{address}"), scraper)
        start = last = time.monotonic()
        reading = asyncio.create_task(reader.read(30))
        while not reading.done():
            await asyncio.sleep(0.001)
            last, before = time.monotonic(), last
            gaps.append(last - before)
        await scraper.close()
        return reading.result(), max(gaps), last - start

    with served({"/metrics": page}) as address:
        tries = [asyncio.run(scenario(address)) for _ in range(3)]
    assert {told.failure for told, *_ in tries} == {Failure.UNUSABLE}
    assert min(gap / took for _, gap, took in tries) < 0.5  # a busy machine may hold up one of them


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_a_clock_that_is_set_makes_no_page_stale_and_none_fresh(step: float) -> None:
    told = reads((0, dcgm(GPU_TEMP=71)), *[(30, None)] * 6, step_of_wall=step)
    assert [snapshot.failure for snapshot in told] == [None] * 6 + [Failure.STALE]


def test_a_new_xid_counts_once_and_one_that_was_there_before_does_not() -> None:
    told = reads(
        *((30, dcgm(POWER_USAGE=300 + step, XID_ERRORS=xid)) for step, xid in enumerate((13, 13, 31, 31, 79, 0, 79)))
    )
    found = [[(xid.gpu, xid.xid, xid.count) for xid in snapshot.xids] for snapshot in told]
    assert found == [[], [], [("GPU-a", 31, 1)], [], [("GPU-a", 79, 1)], [], [("GPU-a", 79, 1)]]
    assert told[2].xids[0].at == STARTED + 90


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


CARD = 'UUID="GPU-a",modelName="A100, 40 GB {x}"'


@pytest.mark.parametrize(
    ("word", "failures"),
    [
        ("[Not Supported]", set()),
        ("Not Supported", set()),
        ("[N/A]", set()),
        ("N/A", set()),
        ("", set()),
        ("27.1 W", set()),
        ("[Unknown Error]", {Failure.UNKNOWN}),
        ("ERR!", {Failure.UNKNOWN}),
        ("[GPU requires reset]", {Failure.RESET_REQUIRED}),
    ],
)
def test_a_word_in_a_numbers_place_costs_that_number_and_is_named(word: str, failures: set[Failure]) -> None:
    page = f"DCGM_FI_DEV_POWER_USAGE{{{CARD}}} {word}\nDCGM_FI_DEV_GPU_TEMP{{{CARD}}} 41\n"
    [told] = reads((0, page.encode()))
    [reading] = told.readings
    assert [value.number for value in reading.values] == [41]
    assert (told.failure, told.dropped, reading.up, set(reading.failures)) == (None, 1, True, failures)
    assert told.notes == (f"GPU-a: DCGM_FI_DEV_POWER_USAGE is {word or 'no sample'!r}; left out",)


def test_lines_of_every_kind_of_nonsense_cost_themselves_alone() -> None:
    nonsense = (
        b'X [Not Supported]\n{a="b"} 1\nDCGM_FI_DEV_POWER_USAGE{UUID="GPU-a} 3\n# TYPE X nonsense\n \xff\xfe\n  Y 1\n\0'
        b'\nDCGM_FI_DEV_FB_USED{UUID="GPU-\xff"} 1\n'
    )
    [told] = reads((0, nonsense + dcgm(GPU_TEMP=41) + b"Z [x]\n" * 20))
    assert [value.number for reading in told.readings for value in reading.values] == [41]
    assert told.dropped == 27
    assert told.notes[0] == "X is '[Not Supported]'; left out"
    assert told.notes[-1] == "17 more lines have no number; left out"
    assert all(note.isprintable() for note in told.notes)


def test_an_exporter_that_is_not_there_is_unreachable() -> None:
    async def read() -> Snapshot:
        scraper = Scraper()
        try:
            page = CardPage(url=f"http://127.0.0.1:{free_port()}")
            return await PageReader(PAGE_SOURCES["dcgm"], page, scraper).read(5)
        finally:
            await scraper.close()

    assert asyncio.run(read()).failure is Failure.UNREACHABLE
