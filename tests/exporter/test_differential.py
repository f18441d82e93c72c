"""Our parser and a real Prometheus, of every version here, give the same verdicts, series and values.

`python -m bench.parser_differential --pages 100000` is the same on a larger scale.
"""

import asyncio

import pytest

from bench.differential.compare import Comparison
from bench.differential.session import Finding, Size, run
from bench.parser_differential import report
from running.tools import Tool

SEED = 20240229
PAGES = 1500


@pytest.fixture(scope="module")
def compared(prometheus_binaries: Tool) -> tuple[Comparison, list[Finding]]:
    size = Size(pages=PAGES, targets=300, batch=600)
    return asyncio.run(run(prometheus_binaries, seed=SEED, size=size))


def test_captures_field_faults_and_invented_pages_are_read_alike(
    compared: tuple[Comparison, list[Finding]],
) -> None:
    total, findings = compared
    assert len(total.differences) == 0, report(total, findings, "")


def test_the_pages_ask_for_both_verdicts_and_for_every_exception(
    compared: tuple[Comparison, list[Finding]],
) -> None:
    total, _ = compared
    assert total.counts.total() > PAGES
    assert total.counts["accepted by both"] > PAGES // 5
    assert total.counts["refused by both"] > PAGES // 5
    for exception in ("exception: CRLF", "exception: byte-order mark", "exception: unusable sample dropped"):
        assert total.counts[exception], f"no page with {exception}"
