"""Whatever was read before, a page means what it would mean if it were the first: shown on ever new pages in a row."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.failures import ScrapeError
from exporter.normalise import Normaliser, recognise
from exporter.objectives import Slos
from exporter.parse import Parser
from tests.exporter.captured import capture

VALUES = (
    "1",
    "2.5",
    "1e3",
    "NaN",
    "+Inf",
    "1_0",
    "1e999",
    "",
    " 3",
    "4 ",
    "1\t2",
    "1 2",
    '{a="x',
    '"} 1',
    "\0",
    "é",
    "6\r",
)
LABELS = (
    "",
    '{a="b"}',
    '{a="1 2"}',
    '{a="} 3"}',
    '{a="# x"}',
    '{ a="b" }',
    '{a="x\ny"}',
    '{a="x\nb 1\ny"}',
    ' {a="b"}',
)
OTHERS = ("", "# x", "# HELP a x", "# TYPE a gauge", "# TYPE a counter", "\0", '"} 1', 'y"} 1', '{a="x', "# EOF", " ")
NAMES = ("a", "b", "vllm:num_requests_running", "vllm:num_requests_waiting")

samples = st.builds(
    "{}{} {}".format, st.sampled_from(NAMES), st.sampled_from(LABELS), st.just("1") | st.sampled_from(VALUES)
)
lines = samples | samples | samples | st.sampled_from(OTHERS)
PLAIN = [
    "# HELP a x",
    "# TYPE a gauge",
    "a 1",
    'a{a="b"} 2',
    'a{a="1 2"} 3',
    "# x",
    "vllm:num_requests_running 4",
    "b 5",
]
changes = st.tuples(st.sampled_from(["replace", "insert", "delete", "swap", "value"]), st.integers(0, 20), lines)
scrapes = st.tuples(
    st.lists(changes, max_size=2), st.booleans(), st.integers(0, 99), st.sampled_from([False] * 4 + [True])
)


def changed(page: Sequence[str], change: str, place: int, line: str) -> list[str]:
    """Answer a page as it is after something happened to one of its lines."""
    at = place % (len(page) or 1)
    before, one, after = list(page[:at]), list(page[at : at + 1]), list(page[at + 1 :])
    match change:
        case "replace":
            one = [line]
        case "insert":
            one.insert(0, line)
        case "delete":
            one = []
        case "swap":
            one, after = [*after[:1], *one], after[1:]
        case _:
            one = [f"{start.rpartition(' ')[0]} {line.rpartition(' ')[2]}" for start in one]
    return before + one + after


def meaning(parser: Parser, normaliser: Normaliser, body: bytes, *, openmetrics: bool) -> object:
    """Answer all that becomes of a page."""
    try:
        page = parser.parse(body, openmetrics=openmetrics)
    except ScrapeError as error:
        return error.reason, str(error)
    read = [(one.name, dict(one.labels), repr(value)) for one, value in zip(page.series, page.values, strict=True)]
    engine = recognise(page)
    if engine is None:
        return read, page.dropped
    found = normaliser.normalise(page, engine, None)
    return read, page.dropped, found.text, found.missing, found.unmapped, found.dropped, found.sleeping


@given(st.just(PLAIN) | st.lists(lines, min_size=4, max_size=9), st.lists(scrapes, min_size=5, max_size=12))
def test_a_page_means_what_it_would_mean_alone(
    page: list[str], scrapes: list[tuple[list[tuple[str, int, str]], bool, int, bool]]
) -> None:
    parser, normaliser = Parser(), Normaliser(Slos())
    for happened, lasts, count, openmetrics in scrapes:
        now = page
        for change in happened:
            now = changed(now, *change)
        body = "\n".join([*now, f'b{{c="n"}} {count}', "# EOF", ""]).encode()
        alone = meaning(Parser(), Normaliser(Slos()), body, openmetrics=openmetrics)
        assert meaning(parser, normaliser, body, openmetrics=openmetrics) == alone
        page = now if lasts else page


@pytest.mark.parametrize("rest", ['{a="x\n"} 1', '{a="x\nb 1\ny"} 1', "1\t2", "1\tx", '{a="x\n\0"} 1'])
def test_a_line_that_begins_as_a_known_one_and_goes_on_otherwise_is_read_by_the_grammar(rest: str) -> None:
    parser, normaliser = Parser(), Normaliser(Slos())
    parser.parse(b"a 1\nb 2\n")
    page = f"a {rest}\nc 3\n".encode()
    alone = meaning(Parser(), Normaliser(Slos()), page, openmetrics=False)
    assert meaning(parser, normaliser, page, openmetrics=False) == alone


def test_two_replicas_whose_pages_differ_in_one_label_are_told_apart() -> None:
    page = capture("vllm-0.32.0/under-load")
    pages = [page, page.replace(b'engine="0"', b'engine="1"'), page.replace(b'engine="0"', b'engine="0 "')]
    parser, normaliser = Parser(), Normaliser(Slos())
    alone = [meaning(Parser(), Normaliser(Slos()), one, openmetrics=False) for one in pages]
    for _ in range(3):
        assert [meaning(parser, normaliser, one, openmetrics=False) for one in pages] == alone
