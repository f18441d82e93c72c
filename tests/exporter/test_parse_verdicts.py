"""Verdicts that a real Prometheus gave on small pages on which we once differed; found by the differential test."""

import pytest

from exporter.failures import ScrapeError
from exporter.parse import Page, Parser

TAKEN: dict[str, tuple[bytes, dict[str, float]]] = {
    "a NUL byte where a line begins ends the page": (b"a 1\n\x00b 2\n", {"a": 1.0}),
    "a NUL byte after blanks ends the page": (b"a 1\n \x00\n%", {"a": 1.0}),
    "a NUL byte in a comment without a blank ends the page": (b"a 1\n#\x00\nb 2\n", {"a": 1.0}),
    "a NUL byte first in a comment ends the page": (b"a 1\n# \x00\nb 2\n", {"a": 1.0}),
    "a NUL byte later in a comment does not": (b"# x\x00y\nb 2\n", {"b": 2.0}),
    "a NUL byte in a label value is a character": (b'a{b="\n\x00"} 1\nb 2\n', {"a|b=\n\x00": 1.0, "b": 2.0}),
    "a NUL byte after a label value is a part of it": (b'a{b="c"\x00,d="e"\x00\x00} 1\n', {'a|b=c"|d=e"\x00': 1.0}),
    "a NUL byte after a blank before a label value": (b'a{b= \x00"c"} 1\n', {"a|b=c": 1.0}),
    "a label that is empty anywhere is no label": (b'a{b="x",b="",c="y",b="x"} 1\n', {"a|c=y": 1.0}),
    "a label that is empty twice is no label": (b'a{b="",b=""} 1\n', {"a": 1.0}),
    "the largest timestamp": (b"a 1 0009223372036854775807\n", {"a": 1.0}),
    "a help text after one byte that is no UTF-8": (b"# HELP a\xffx\na 1\n", {"a": 1.0}),
    "a help text of nothing": (b"# HELP a\na 1\n", {"a": 1.0}),
    "a type after any one byte": (b"# TYPE a-gauge\na 1\n", {"a": 1.0}),
    "a tab after a timestamp": (b"a 1\t2\t\n", {"a": 1.0}),
    "a tab after a value": (b"a 1\t\n", {"a": 1.0}),
    "a blank before the braces": (b'a {b="c"}1\n', {"a|b=c": 1.0}),
}
REFUSED: dict[str, bytes] = {
    "a blank before a name": b" a 1\n",
    "a tab before a name": b"\ta 1\n",
    "a timestamp that is too large": b"a 1 9223372036854775808\n",
    "a help text that is not UTF-8": b"# HELP a \xff\na 1\n",
    "a help text right after the name in another alphabet": "# HELP aé\na 1\n".encode(),
    "a type after a blank of two bytes": "# TYPE a\u00a0gauge\n".encode(),
    "a NUL byte after the name of a type": b"# TYPE a\x00gauge\n",
    "a NUL byte in a keyword does not hide it": b"# TY\x00PE a x\n",
    "a NUL byte before a label value": b'a{b=\x00"c"} 1\n',
    "a name taken away": b'a{__name__=""} 1\n',
    "a name twice": b'a{__name__="a"} 1\n',
    "a value with a brace": b"a 1{\n",
    "braces twice": b"a{}{} 1\n",
}
TAKEN_OPENMETRICS: dict[str, tuple[bytes, dict[str, float]]] = {
    "no line end after # EOF": (b"a 1\n# EOF", {"a": 1.0}),
    "nothing before # EOF": (b"# EOF\n", {}),
    "a unit that the name ends with": (b"# UNIT a_s s\na_s 1\n# EOF\n", {"a_s": 1.0}),
    "an empty unit": (b"# UNIT a \na 1\n# EOF\n", {"a": 1.0}),
    "a NUL byte after a label value is a part of it": (b'a{b="c"\x00} 1\n# EOF\n', {'a|b=c"': 1.0}),
    "a NUL byte in a keyword": (b"# TYPE\x00 a gauge\n# HE\x00LP \x00a x\n# E\x00OF\n", {}),
    "a NUL byte after a help text": (b"# HELP a x\n\x00\x00a 1\n# HELP b x\n\x00# EOF\n", {"a": 1.0}),
    "an exemplar with a time": (b'a_total 1 # {b="c"} 1 2.5\n# EOF\n', {"a_total": 1.0}),
    "a time and an exemplar": (b"a_total 1 -2.5 # {} 1\n# EOF\n", {"a_total": 1.0}),
}
REFUSED_OPENMETRICS: dict[str, bytes] = {
    "an empty page": b"",
    "an empty line": b"a 1\n\n# EOF\n",
    "an empty line after # EOF": b"a 1\n# EOF\n\n",
    "a sample after # EOF": b"a 1\n# EOF\nb 1\n",
    "# EOF within a line": b"a 1 # EOF\n",
    "a free comment": b"# x\n# EOF\n",
    "a help text without a blank before it": b"# HELP a\n# EOF\n",
    "two blanks": b"a  1\n# EOF\n",
    "a blank at the end": b"a 1 \n# EOF\n",
    "a tab": b"a{}\t1\n# EOF\n",
    "a blank within braces": b'a{b="c", d="e"} 1\n# EOF\n',
    "a line break in a label value": b'a{b="\n"} 1\n# EOF\n',
    "no blank after the braces": b'a{b="c"}1\n# EOF\n',
    "a type of the text format": b"# TYPE a untyped\n# EOF\n",
    "a unit that the name does not end with": b"# UNIT a_ms s\n# EOF\n",
    "a time that is no number": b"a 1 NaN\n# EOF\n",
    "a NUL byte in an exemplar's label": b'a_total 1 # {b="\x00"} 1\n# EOF\n',
    "a NUL byte first in a comment": b"# \x00HELP a x\n# EOF\n",
    "a NUL byte after a type": b"# TYPE a gauge\n\x00a 1\n# EOF\n",
    "an exemplar without a value": b'a_total 1 # {b="c"}\n# EOF\n',
    "an exemplar whose time is no number": b"a_total 1 # {} 1 x\n# EOF\n",
    "an exemplar whose label is not UTF-8": b'a_total 1 # {b="\xff"} 1\n# EOF\n',
}


def samples(page: Page) -> dict[str, float]:
    return {
        one.name + "".join(f"|{name}={value}" for name, value in sorted(one.labels.items())): value
        for one, value in zip(page.series, page.values, strict=True)
    }


@pytest.fixture(params=["alone", "after all other pages"])
def parser(request: pytest.FixtureRequest) -> Parser:
    """Answer a parser; what it remembers of pages of both formats must not change a verdict."""
    parser = Parser()
    if request.param != "alone":
        for body, _ in TAKEN.values():
            parser.parse(body)
        for body, _ in TAKEN_OPENMETRICS.values():
            parser.parse(body, openmetrics=True)
    return parser


def test_a_page_that_was_converted_to_crlf_twice_is_read() -> None:
    page = Parser().parse(b"# TYPE a gauge\r\r\na 1\r\r\n")
    assert (samples(page), page.dropped) == ({"a": 1.0}, 0)


@pytest.mark.parametrize("case", TAKEN)
def test_taken(case: str, parser: Parser) -> None:
    body, expected = TAKEN[case]
    page = parser.parse(body)
    assert (samples(page), page.dropped) == (expected, 0)


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, parser: Parser) -> None:
    with pytest.raises(ScrapeError):
        parser.parse(REFUSED[case])


@pytest.mark.parametrize("case", TAKEN_OPENMETRICS)
def test_taken_openmetrics(case: str, parser: Parser) -> None:
    body, expected = TAKEN_OPENMETRICS[case]
    page = parser.parse(body, openmetrics=True)
    assert (samples(page), page.dropped) == (expected, 0)


@pytest.mark.parametrize("case", REFUSED_OPENMETRICS)
def test_refused_openmetrics(case: str, parser: Parser) -> None:
    with pytest.raises(ScrapeError):
        parser.parse(REFUSED_OPENMETRICS[case], openmetrics=True)


def test_a_label_that_is_not_utf8_costs_its_sample_even_where_an_empty_one_takes_it_away() -> None:
    page = Parser().parse(b'a{b="\xff",b=""} 1\nc 1\n')
    assert (samples(page), page.dropped) == ({"c": 1.0}, 1)
