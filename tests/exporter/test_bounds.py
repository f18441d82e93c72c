"""What one replica may take is bounded: hangs, floods of labels, ranks and names, open files. Nothing is timed."""

import asyncio
import json
import logging
import resource
import tracemalloc
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter import open_files
from exporter.engines import ENGINES
from exporter.fleet import Fleet, Replica
from exporter.normalise import Normaliser
from exporter.objectives import Slos
from exporter.parse import Parser
from exporter.service import Options, Service
from exporter.tame import shortened, tamed
from tests.exporter.captured import CAPTURES, capture
from tests.exporter.sockets import PAGE, Behaviour, answer, by_path, engine, look, raw

BUDGET = 20.0


def dripping() -> Behaviour:
    async def behave(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n")
        while True:
            writer.write(b"#")
            await writer.drain()
            await asyncio.sleep(0.2)

    return behave


def flooding(lines: int) -> bytes:
    """Write a page of one model per line, as a server does that counts whatever name a client asks for."""
    return PAGE + b"".join(b'vllm:num_requests_running{model_name="m%d"} 1.0\n' % at for at in range(lines))


def test_sixty_answer_while_forty_hang_or_drip() -> None:
    async def scenario() -> tuple[list[bool], bool]:
        async with AsyncExitStack() as stack:
            urls = {
                kind: [f"http://{await stack.enter_async_context(engine(behaviour))}" for _ in range(number)]
                for kind, behaviour, number in (
                    ("well", answer(), 60),
                    ("hanging", raw(b"", then_close=False), 30),
                    ("dripping", dripping(), 10),
                )
            }
            replicas = tuple(
                Replica(name=f"{kind}-{at}", url=url, engine="vllm")
                for kind in urls
                for at, url in enumerate(urls[kind])
            )
            service = Service(Options(fleet=Path("fleet.yml")), Fleet(replicas=replicas))
            tasks = {
                name: asyncio.create_task(service.look(watch, BUDGET))
                for name, watch in sorted(service.watches.items())
            }
            well = [(await task).up for name, task in tasks.items() if name.startswith("well")]
            is_sick_waiting = not any(task.done() for name, task in tasks.items() if not name.startswith("well"))
            service.abandon()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
            await service.close()
            return well, is_sick_waiting

    assert asyncio.run(scenario()) == ([True] * 60, True)


def test_a_flood_of_models_is_one_bounded_page_with_the_right_sum() -> None:
    outcome = look(answer(body=flooding(10_000)), model=None)
    assert outcome.up
    assert 'llm_requests_running{model="tiny"} 10008.0' in outcome.page
    assert len(outcome.page) < 2 * len(look(answer()).page)


def test_more_ranks_than_anybody_has_are_left_out_and_counted() -> None:
    lines = b"".join(b'vllm:num_requests_running{engine="%d",model_name="tiny"} 1.0\n' % at for at in range(1, 1000))
    outcome = look(answer(body=PAGE + lines))
    assert outcome.page.count("\nllm_requests_running{") == 256
    assert "\nllm_replica_dropped_samples_total 744.0" in outcome.page


def test_unmapped_names_without_end_are_a_short_note() -> None:
    lines = b"".join(b"vllm:new_%d 1.0\n" % at for at in range(1000))
    outcome = look(answer(body=PAGE + lines))
    assert "llm_replica_unmapped_series 1000.0" in outcome.page
    [note] = outcome.notes
    assert note.endswith(" and 990 more names")


@pytest.mark.parametrize("name", ["org/model-7b:fp8", "模型-é😀", 'a}b,{c="d" # e', "x" * 200, ""])
def test_an_ordinary_name_stays_as_it_is(name: str) -> None:
    assert tamed(name) == name


@pytest.mark.parametrize(
    ("name", "beginning"),
    [
        ("a\nb\x00c", "a\ufffdb\ufffdc\u2026"),
        ("half \ud800 a pair", "half \ufffd a pair\u2026"),
        ("x" * 300, "x" * 191 + "\u2026"),
    ],
)
def test_what_an_engine_calls_itself_is_printable_and_short(name: str, beginning: str) -> None:
    assert tamed(name).startswith(beginning)
    assert len(tamed(name)) == len(beginning) + 8
    assert tamed(name).isprintable()
    assert tamed(tamed(name)) == tamed(name), "what was learned is read back from a file"


names = st.text(st.characters(exclude_categories=()), min_size=1, max_size=6).map(lambda text: text + "x" * 199)


@given(st.lists(st.one_of(names, st.text(max_size=3)), unique=True, max_size=6))
def test_two_names_never_become_one(different: list[str]) -> None:
    assert len({tamed(name) for name in different}) == len(different)


@pytest.mark.parametrize(
    ("sentence", "shown"), [("one\nline", "one\ufffdline"), ("x" * 30, "x" * 19 + "\u2026"), ("short", "short")]
)
def test_a_sentence_is_one_short_line(sentence: str, shown: str) -> None:
    assert shortened(sentence, 20) == shown


def test_a_name_that_is_no_text_breaks_no_page() -> None:
    props = json.loads((CAPTURES / "llama-server-b11434" / "props.json").read_text())
    props |= {"model_alias": "half \ud800 a pair", "model_path": "half \ud800 a pair"}
    behaviour = by_path(
        metrics=answer(body=capture("llama-server-b11434/under-load")), props=answer(body=json.dumps(props).encode())
    )
    outcome = look(behaviour, engine="llama-server", model=None)
    assert outcome.up
    assert outcome.page.encode()
    assert "\ufffd" in outcome.model


def test_plans_are_forgotten_by_their_size_not_their_number() -> None:
    parser, normaliser = Parser(), Normaliser(Slos())
    sizes = []
    for scrape in range(60):
        page = "".join(f'vllm:num_requests_running{{model_name="{scrape}-{at:0200}"}} 1\n' for at in range(10_000))
        for _ in range(2):
            normaliser.normalise(parser.parse(page.encode()), ENGINES["vllm"], None)
        sizes.append(normaliser.size)
    assert max(sizes) <= 2**25
    assert 0 < sizes[-1] < len(sizes) * sizes[0], "something was forgotten"


def test_labels_that_change_with_each_scrape_leave_no_plan() -> None:
    parser, normaliser = Parser(), Normaliser(Slos())
    for scrape in range(10):
        page = parser.parse(f'vllm:num_requests_running{{model_name="m",pod="{scrape}"}} {scrape}\n'.encode())
        found = normaliser.normalise(page, ENGINES["vllm"], None)
        assert found.totals == {"llm_requests_running": float(scrape)}
    assert normaliser.size == 0


def test_too_few_open_files_are_said_and_how_to_have_more(caplog: pytest.LogCaptureFixture) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    caplog.set_level(logging.WARNING)

    async def scenario() -> None:
        replicas = tuple(Replica(name=f"r{at}", url=f"http://h:{at + 1}") for at in range(300))
        service = Service(Options(fleet=Path("fleet.yml")), Fleet(replicas=replicas))
        await service.close()

    resource.setrlimit(resource.RLIMIT_NOFILE, (999, hard))
    try:
        asyncio.run(scenario())
        assert open_files.too_few(299) == ""
        open_files.raise_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    [record] = caplog.records
    assert record.message.startswith(
        "300 replicas may need 1000 open files and 999 are allowed: raise it (ulimit -n 1000;"
    )


@pytest.mark.parametrize("line", ["# {at} {long}", 'vllm:new{{y="{at} {long}"}} 1'])
def test_lines_without_end_are_forgotten_by_their_size_not_their_number(line: str) -> None:
    parser = Parser()
    tracemalloc.start()
    try:
        sizes = []
        for at in range(300):
            parser.parse(line.format(at=at, long="z" * 200_000).encode())
            sizes.append(tracemalloc.get_traced_memory()[0])
        assert max(sizes) < 2**26
        assert sizes != sorted(sizes), "something was forgotten"
    finally:
        tracemalloc.stop()
