"""Sources over time: one that breaks costs nobody else's cards, and what was there is missed."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from exporter.cards import CardPage, Gpus
from exporter.fleet import Fleet, Replica
from exporter.gpu.collector import Collector
from exporter.gpu.page import PageReader
from exporter.gpu.reading import Card, Failure, Reading, Snapshot, Xid
from exporter.scrape import Scraper
from exporter.watch import AbandonedError

A, B, PART = Card(gpu="GPU-a"), Card(gpu="GPU-b"), Card(gpu="GPU-a", partition="3")
PAGES = {"dcgm": (CardPage(url="http://a:1"),), "amd": (CardPage(url="http://b:2"),)}
FLEET = Fleet(replicas=(), gpus=Gpus(nvml=False, pages=PAGES))
Answer = Snapshot | Exception


def pages(
    monkeypatch: pytest.MonkeyPatch, first: Sequence[Answer], second: Sequence[Answer], fleet: Fleet = FLEET
) -> list[str]:
    """Answer the page after each step of two sources."""
    script = {"a:1": iter(first), "b:2": iter(second)}

    async def read(self: PageReader, budget: float) -> Snapshot:
        del budget
        answer = next(script[self._page.url.removeprefix("http://")])
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def ask() -> list[str]:
        scraper = Scraper()
        collector = Collector(scraper, str, 0.0)
        collector.use(fleet)
        try:
            return [await collector.page(1) for _ in first]
        finally:
            await collector.close()
            await scraper.close()

    monkeypatch.setattr(PageReader, "read", read)
    return asyncio.run(ask())


def seen(*cards: Card, xids: tuple[Xid, ...] = ()) -> Snapshot:
    return Snapshot(readings=tuple(Reading(card=card) for card in cards), xids=xids)


def test_a_source_that_breaks_in_an_unforeseen_way_costs_only_its_own_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    [page] = pages(monkeypatch, [RuntimeError("gpu lost")], [seen(B)])
    assert 'llm_gpu_collector_failure{source="dcgm",origin="a:1",reason="crashed"} 1.0\n' in page
    assert 'llm_gpu_up{gpu="GPU-b"} 1.0\n' in page


def test_a_card_that_was_there_is_missed_and_a_part_of_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    _, page = pages(monkeypatch, [seen(A, PART, B), seen(B)], [seen(), seen()])
    assert 'llm_gpu_up{gpu="GPU-a"} 0.0\n' in page
    assert 'llm_gpu_failure{gpu="GPU-a",reason="lost"} 1.0\n' in page
    assert 'partition="3"' not in page, "cards are divided anew on purpose"


GONE = Snapshot(failure=Failure.UNREACHABLE, sentence="no connection")


def test_nobody_can_tell_of_cards_whose_source_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    before, page = pages(monkeypatch, [seen(A, B), GONE], [seen(), seen()])
    assert 'llm_gpu_failure{gpu="GPU-a",reason="unseen"} 1.0\n' in page
    assert "llm_gpu_up" not in page, "they may be well"
    assert 'llm_gpu_collector_cards{source="dcgm",origin="a:1"} 2.0\n' in page
    assert "# dcgm a:1: no connection\n" in page
    times = [
        [line for line in each.splitlines() if line.startswith("llm_gpu_collector_success_timestamp_seconds{")]
        for each in (before, page)
    ]
    assert times[0][0] == times[1][0], "the time of the last success stays"


def test_a_card_that_its_living_source_lost_is_down_though_another_source_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    *_, page = pages(monkeypatch, [seen(A), GONE], [seen(A, B), seen(B)])
    assert 'llm_gpu_up{gpu="GPU-a"} 0.0\n' in page
    assert 'llm_gpu_failure{gpu="GPU-a",reason="lost"} 1.0\n' in page


def test_a_card_that_was_lost_stays_so_while_its_source_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    ill = Reading(card=A, up=False, failures=frozenset({Failure.RESET_REQUIRED}))
    *_, before, after = pages(
        monkeypatch, [seen(A, B), Snapshot(readings=(ill, *seen(B).readings)), GONE, seen(A, B)], [seen()] * 4
    )
    assert 'llm_gpu_up{gpu="GPU-a"} 0.0\n' in before
    assert 'llm_gpu_failure{gpu="GPU-a",reason="reset_required"} 1.0\n' in before
    assert 'llm_gpu_failure{gpu="GPU-b",reason="unseen"} 1.0\n' in before
    assert 'llm_gpu_up{gpu="GPU-a"} 1.0\n' in after


def test_a_source_is_logged_when_it_changes_and_not_each_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stale = Snapshot(failure=Failure.STALE, sentence="no number on the page has changed for 180 s")
    caplog.set_level("INFO")
    pages(monkeypatch, [seen(A), GONE, GONE, GONE, stale, stale, seen(A), seen(A)], [seen()] * 8)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "GPU source dcgm a:1: no connection"),
        ("WARNING", "GPU source dcgm a:1: no number on the page has changed for 180 s"),
        ("INFO", "GPU source dcgm a:1 tells of its cards again"),
    ]


def fleet_of(*gpus: str, exporters: tuple[str, ...] = ()) -> Fleet:
    replica = Replica(name="r", url="http://10.0.0.1:8000", gpus=gpus)
    return Fleet(replicas=(replica,), gpus=Gpus(nvml=False, pages=PAGES, exporters=exporters))


@pytest.mark.parametrize(
    ("name", "second", "exporters", "remark"),
    [
        ("GPU-x", seen(), (), "no source shows GPU-x: correct gpus in fleet.yml, or name under gpu who shows the card"),
        ("GPU-x", GONE, (), "no source shows GPU-x; amd b:2 cannot tell now"),
        ("GPU-x", seen(), ("http://c:3",), "no source of this exporter shows GPU-x; one under gpu.exporters has to"),
        ("GPU-a/9", seen(), (), "GPU-a has no instance 9 now: correct gpus in fleet.yml, or divide the card"),
    ],
)
def test_a_name_that_no_source_knows_is_told(
    monkeypatch: pytest.MonkeyPatch, name: str, second: Snapshot, exporters: tuple[str, ...], remark: str
) -> None:
    [page] = pages(monkeypatch, [seen(A, PART)], [second], fleet_of("GPU-a", "GPU-a/3", name, exporters=exporters))
    assert [line for line in page.splitlines() if line.startswith("# fleet.yml")] == [
        f"# fleet.yml: replica r: {remark}"
    ]


def test_a_card_of_two_sources_is_the_one_that_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    _, page = pages(monkeypatch, [seen(A), seen()], [seen(A), seen(A)])
    assert 'llm_gpu_up{gpu="GPU-a"} 1.0\n' in page
    assert page.count("\nllm_gpu_up{") == 1


def test_errors_add_up_over_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    def new(count: int, at: float) -> Snapshot:
        return seen(A, xids=(Xid(gpu="GPU-a", xid=31, count=count, at=at),))

    page = pages(monkeypatch, [new(2, 100.0), seen(A), new(1, 300.0)], [seen()] * 3)[-1]
    assert 'llm_gpu_xid_errors_total{gpu="GPU-a",xid="31"} 3.0\n' in page
    assert 'llm_gpu_xid_last_timestamp_seconds{gpu="GPU-a",xid="31"} 300.0\n' in page


def test_readers_at_once_share_one_look() -> None:
    async def ask() -> set[str]:
        scraper = Scraper()
        collector = Collector(scraper, str, 60.0)
        collector.use(Fleet(replicas=(), gpus=Gpus(nvml=False, pages={"dcgm": (CardPage(url="http://127.0.0.1:1"),)})))
        try:
            return set(await asyncio.gather(*(collector.page(1) for _ in range(20))))
        finally:
            await collector.close()
            await scraper.close()

    assert len(asyncio.run(ask())) == 1, "the duration alone would differ"


def test_a_source_that_names_its_cards_anew_each_time_is_not_remembered_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cards = [[Card(gpu=f"GPU-{step}-{at}") for at in range(500)] for step in range(5)]
    *_, page = pages(monkeypatch, [seen(*some) for some in cards], [seen()] * 5)
    assert page.count("\nllm_gpu_up{") == 1024


def test_an_impatient_reader_makes_no_card_look_lost_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    async def read(self: PageReader, budget: float) -> Snapshot:
        del self
        await asyncio.sleep(min(0.2, budget))
        return seen(A) if budget > 0.2 else Snapshot(failure=Failure.TIMEOUT, sentence="too slow")

    monkeypatch.setattr(PageReader, "read", read)
    pages = asyncio.run(_looked((1, 1, 5, 5), min_interval=60.0))
    assert ["\nllm_gpu_collector_up{" in page for page in pages] == [True] * 4
    assert pages[1] == pages[0], "a look that succeeded is shared with everybody"
    pages = asyncio.run(_looked((0.01, 5, 5), min_interval=60.0))
    assert ['llm_gpu_up{gpu="GPU-a"} 1.0' in page for page in pages] == [False, True, True]


def test_a_reader_does_not_wait_for_the_look_of_a_more_patient_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async def read(self: PageReader, budget: float) -> Snapshot:
        del self
        await asyncio.sleep(budget)
        return Snapshot(failure=Failure.TIMEOUT, sentence="too slow")

    monkeypatch.setattr(PageReader, "read", read)

    async def scenario() -> None:
        async with _collector(min_interval=60.0) as collector:
            patient = asyncio.create_task(collector.page(30))
            await asyncio.sleep(0)
            with pytest.raises(AbandonedError, match="another reader's look still waits"):
                await collector.page(0.01)
            collector.abandon()
            await asyncio.wait({patient})

    asyncio.run(scenario())


async def _looked(budgets: Sequence[float], *, min_interval: float) -> list[str]:
    async with _collector(min_interval=min_interval) as collector:
        return await asyncio.gather(*map(collector.page, budgets))


@asynccontextmanager
async def _collector(*, min_interval: float) -> AsyncIterator[Collector]:
    scraper = Scraper()
    collector = Collector(scraper, str, min_interval)
    collector.use(FLEET)
    try:
        yield collector
    finally:
        await collector.close()
        await scraper.close()


def test_errors_that_are_made_up_fill_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(start: int) -> Snapshot:
        return seen(A, xids=tuple(Xid(gpu="GPU-a", xid=start + one, count=1, at=1.0) for one in range(3000)))

    *_, page = pages(monkeypatch, [told(0), told(3000), told(6000)], [seen()] * 3)
    assert page.count("\nllm_gpu_xid_errors_total{") == page.count("\nllm_gpu_xid_last_timestamp_seconds{") == 4096
    assert 'llm_gpu_xid_errors_total{gpu="GPU-a",xid="8999"} 1.0\n' in page
