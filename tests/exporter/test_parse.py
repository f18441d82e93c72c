"""Pages are read as Prometheus reads them; one bad value costs its sample, not the page."""

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.catalogue import Group, Kind, Label, Metric
from exporter.expose import Point, Template
from exporter.failures import Reason, ScrapeError
from exporter.numbers import number, printed
from exporter.parse import Page, Parser
from tests.exporter.captured import PAGES, capture


def read(text: str | bytes, *, openmetrics: bool = False) -> Page:
    body = text if isinstance(text, bytes) else text.encode()
    return Parser().parse(body, openmetrics=openmetrics)


def samples(page: Page) -> dict[str, float]:
    return {
        one.name + "".join(f"|{name}={value}" for name, value in sorted(one.labels.items())): value
        for one, value in zip(page.series, page.values, strict=True)
    }


READ: dict[str, tuple[str | bytes, dict[str, float], int]] = {
    "a sample": ("a 1\n", {"a": 1.0}, 0),
    "no line end at the end": ("a 1", {"a": 1.0}, 0),
    "labels, and a comma after the last": ('a{b="c",d="e",} 1\n', {"a|b=c|d=e": 1.0}, 0),
    "braces without labels": ("a{} 1\n", {"a": 1.0}, 0),
    "blanks wherever the grammar allows them": ('a { b = "c" , d="e" }\t 1 \n', {"a|b=c|d=e": 1.0}, 0),
    "no blank before the value": ('a{b="c"}1\n', {"a|b=c": 1.0}, 0),
    "a timestamp": ("a 1 1700000000000\n", {"a": 1.0}, 0),
    "characters of the syntax in a value": (r'a{m="a}b,{c=\"d\" # e"} 3', {'a|m=a}b,{c="d" # e': 3.0}, 0),
    "escaped backslashes": (r'a{m="C:\\models\\q4.gguf"} 1', {r"a|m=C:\models\q4.gguf": 1.0}, 0),
    "an escaped line break": (r'a{m="one\ntwo"} 1', {"a|m=one\ntwo": 1.0}, 0),
    "an escape that is none stays as it is": (r'a{m="x\d"} 1', {r"a|m=x\d": 1.0}, 0),
    "other alphabets": ('a{m="模型-é😀"} 2', {"a|m=模型-é😀": 2.0}, 0),
    "a raw line break in a label value": (
        'a{m="line one\nline two"} 1\nb 1\n',
        {"a|m=line one\nline two": 1.0, "b": 1.0},
        0,
    ),
    "a label value over many lines": ('a{m="1\n2\n\n# 4\n5"} 1\nb 2', {"a|m=1\n2\n\n# 4\n5": 1.0, "b": 2.0}, 0),
    "an empty label is no label": ('a{m=""} 1', {"a": 1.0}, 0),
    "six digits with an exponent": ("a 1.73456e+06\n", {"a": 1734560.0}, 0),
    "infinities": ("a +Inf\nb -inf\nc infinity\n", {"a": math.inf, "b": -math.inf, "c": math.inf}, 0),
    "the first of two equal series": ('a{b="1"} 1\na{b="1"} 2\n', {"a|b=1": 1.0}, 0),
    "comments of any kind": ("#\n# x\n#x\n# UNIT a b\n# HELP a\n# HELP a text\n# TYPE a gauge\na 1", {"a": 1.0}, 0),
    "CRLF": ("# TYPE a gauge\r\na 1\r\n", {"a": 1.0}, 0),
    "a byte-order mark": (b"\xef\xbb\xbfa 1\n", {"a": 1.0}, 0),
    "an empty page": ("", {}, 0),
    "a signed nan costs its sample": ("a -nan\nb 1\n", {"b": 1.0}, 1),
    "N/A costs its sample": ('a{gpu="0"} N/A\nb 41\n', {"b": 41.0}, 1),
    "a missing value costs its sample": ('a{gpu="0"}\nb 41\n', {"b": 41.0}, 1),
    "a value in another alphabet costs its sample": ("a ١٢\nb 1\n", {"b": 1.0}, 1),
    "a value with underscores costs its sample": ("a 1_000\nb 1\n", {"b": 1.0}, 1),
    "a value beyond floats costs its sample": ("a 1e999\nb 1\n", {"b": 1.0}, 1),
    "a hexadecimal value costs its sample": ("a 0x1p4\nb 1\n", {"b": 1.0}, 1),
    "a label that is not UTF-8 costs its sample": (b'a{m="\xff\xfe"} 1\nb 1\n', {"b": 1.0}, 1),
}


@pytest.mark.parametrize("case", READ)
def test_read(case: str) -> None:
    text, expected, dropped = READ[case]
    page = read(text)
    assert (samples(page), page.dropped) == (expected, dropped)


REFUSED = {
    "JSON": '{"error":{"code":501}}',
    "a page inside a JSON string": '"# TYPE a gauge\\na 1\\n"',
    "HTML": "<!doctype html>\n<html></html>\n",
    "binary": "\x1f\x8b\x08\x00\x00",
    "a word that is no value and another one": "Internal Server Error",
    "a type that does not exist": "# TYPE a meter\na 1\n",
    "a type after two blanks": "# TYPE a  gauge\na 1\n",
    "a type without a name": "# TYPE\t1a gauge\n",
    "a name that begins with a digit": "1a 1\n",
    "blanks before the name": "  a 1\n",
    "a label without quotes": "a{b=c} 1\n",
    "a label name with a colon": 'a{b:c="d"} 1\n',
    "a brace that does not close": 'a{b="c" 1\n',
    "a quote that does not close": 'a{b="c} 1\nb 2\n',
    "a label twice": 'a{b="1",b="2"} 1\n',
    "two commas": 'a{b="1",,c="2"} 1\n',
    "a timestamp that is no whole number": "a 1 1.5\n",
    "a word after the timestamp": "a 1 2 3\n",
    "an exemplar in the text format": 'a 1 # {trace_id="x"} 1\n',
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    with pytest.raises(ScrapeError, match=r"^line \d+ of the page: ") as refusal:
        read(REFUSED[case])
    assert refusal.value.reason is Reason.PARSE


def test_a_refusal_names_the_line_and_shows_no_more_than_its_beginning() -> None:
    with pytest.raises(ScrapeError, match=r"^line 3 of the page: expected a metric name, got '%%x+'$") as refusal:
        read(f"a 1\nb 2\n%%{'x' * 500}\n")
    assert len(str(refusal.value)) < 120


def test_nan_is_a_value_in_any_case() -> None:
    assert all(math.isnan(value) for value in read("a nan\nb NaN\nc NAN\n").values)


def test_openmetrics_must_say_where_it_ends() -> None:
    with pytest.raises(ScrapeError, match="# EOF"):
        read("# TYPE a counter\na_total 1\n", openmetrics=True)


def test_openmetrics_is_read_with_its_types_times_and_exemplars() -> None:
    text = '# TYPE a unknown\na 1 1.5\nb_bucket{le="1.0"} 2 # {trace_id="x"} 0.5\n# EOF\n'
    assert samples(read(text, openmetrics=True)) == {"a": 1.0, "b_bucket|le=1.0": 2.0}


def test_a_known_line_beginning_is_not_trusted_inside_a_label_value() -> None:
    parser = Parser()
    parser.parse(b"b 1\n")
    page = parser.parse(b'a{m="x\nb 1\n"} 2\n')
    assert samples(page) == {"a|m=x\nb 1\n": 2.0}


def test_the_same_page_again_holds_the_same_series() -> None:
    parser = Parser()
    first, second = (parser.parse(capture("vllm-0.32.0/under-load")) for _ in range(2))
    assert first.series == second.series
    assert all(one is other for one, other in zip(first.series, second.series, strict=True))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("b 2", "b  2"),
        ("b 2", "b 2 "),
        ("b 2", "b 2 1700000000000"),
        ("b 2", "b2"),
        ("b 2", "2"),
        ("b 2", "b 1_000"),
        ("b 2", "b NaN"),
        ("b 2", "b two"),
        ("b 2", "b"),
        ("b 2", "# b 2"),
        ("b 2", "b 2\r"),
        ("b 2", "b\t2"),
        ("b 2", "\0 b 2"),
        ("b 2", "a 2"),
        ("b 2\n# x", "# x\nb 2"),
        ("# x", "# y"),
        ("# x", "x 3"),
        ("# x", "#"),
        ("d 4\n", "d 4"),
        ("d 4\n", "d 4\n\n"),
        ("d 4\n", ""),
        ('c{m="v"}', 'c{m="v\nw"}'),
    ],
)
def test_a_page_that_is_almost_the_one_before_is_read_as_if_it_were_the_first(old: str, new: str) -> None:
    page = '# HELP a A.\n# TYPE a gauge\na 1\nb 2\n# x\nc{m="v"} 3\nd 4\n'
    parser = Parser()
    for scrape in range(3):
        assert samples(parser.parse(page.replace("4", str(scrape)).encode()))["d"] == scrape
    assert parser._text.layouts
    changed = page.replace(old, new).encode()
    assert verdict(parser, changed) == verdict(Parser(), changed)


def verdict(parser: Parser, body: bytes) -> object:
    try:
        page = parser.parse(body)
    except ScrapeError as error:
        return str(error)
    return [(one.name, dict(one.labels), str(value)) for one, value in zip(page.series, page.values, strict=True)]


def test_label_values_without_limit_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exporter.parse._REMEMBERED", 100)
    parser = Parser()
    for start in range(0, 2000, 50):
        parser.parse("".join(f'a{{m="{index}"}} 1\n' for index in range(start, start + 50)).encode())
        assert len(parser._text.beginnings) <= 150
        assert len(parser._series) <= 150


def test_an_open_quote_does_not_cost_quadratic_time() -> None:
    start = time.process_time()
    with pytest.raises(ScrapeError):
        read('a{m="\n' + "b 1\n" * 200_000)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("openmetrics", [False, True])
@pytest.mark.parametrize("line", ['a{m="' + "x" * 15_000_000, 'a{m="' + r"\x" * 7_500_000], ids=["plain", "escapes"])
def test_an_open_quote_before_megabytes_holds_up_nobody(line: str, *, openmetrics: bool) -> None:
    start = time.process_time()
    with pytest.raises(ScrapeError):
        read(f"{line}\n# EOF\n", openmetrics=openmetrics)
    assert time.process_time() - start < 5  # it is a regular expression's, so that no thread helps


@pytest.mark.parametrize("name", PAGES)
def test_a_real_page_loses_nothing(name: str) -> None:
    page = read(capture(name))
    lines = [line for line in capture(name).decode().splitlines() if line and not line.startswith("#")]
    assert (len(page.series), page.dropped) == (len(lines), 0)


METRIC = Metric(
    name="llm_x_total", kind=Kind.COUNTER, group=Group.WORK, help='Of "x"\\.', labels=(Label(name="m", help=""),)
)
texts = st.text(st.characters(codec="utf-8"), max_size=30)
floats = st.floats()


@given(st.dictionaries(texts.filter(bool), floats, max_size=8))
def test_what_is_exposed_is_read_back_as_it_was(values: dict[str, float]) -> None:
    points = [Point(metric=METRIC, labels=(("m", name),)) for name in values]
    page = read(Template(points).render(list(values.values())))
    assert page.dropped == 0
    assert [one.labels["m"] for one in page.series] == list(values)
    for got, wanted in zip(page.values, values.values(), strict=True):
        assert got == wanted or (math.isnan(got) and math.isnan(wanted))


@given(floats)
def test_a_printed_value_is_read_as_the_same_value(value: float) -> None:
    back = number(printed(value))
    assert back == value or (back is not None and math.isnan(back) and math.isnan(value))
    assert printed(value).lower() != "-nan"


def test_what_is_exposed_has_no_byte_that_is_not_utf8() -> None:
    text = Template([Point(metric=METRIC, labels=(("m", "\udcff"),))]).render([1.0])
    assert 'm="?"' in text


def test_layouts_share_their_lines() -> None:
    """A layout of its own for each number of lines is a few pointers a line, not a page."""
    parser, page = Parser(), capture("vllm-0.32.0/under-load")
    for more in range(3):
        for _ in range(2):
            parser.parse(page + b"# x\n" * more)
    first, *others = parser._text.layouts.values()
    assert len(others) == 2
    for other in others:
        assert all(one is same for one, same in zip(first.beginnings, other.beginnings, strict=True))
        assert {id(line) for line in first.comments} <= {id(line) for line in other.comments}
