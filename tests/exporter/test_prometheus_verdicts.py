"""Our reader and a real Prometheus judge the same pages: same verdict, same series, same values.

Listed differences are exceptions on purpose: Prometheus loses the whole page there, we lose one sample or nothing.
"""

from pathlib import Path

import pytest

from exporter.failures import ScrapeError
from exporter.parse import Parser
from running.tools import Tool
from tests.exporter.captured import PAGES, capture
from tests.exporter.pages import served
from tests.exporter.real_prometheus import prometheus
from tests.exporter.test_parse import READ, REFUSED, samples

KINDER = {
    "CRLF",
    "a byte-order mark",
    *(case for case, (_, _, dropped) in READ.items() if dropped),
}
STRICTER = {"blanks before the name"}  # 2.42 refuses the page, 3.16 makes them a part of the name
BODIES: dict[str, bytes] = {
    **{case: text.encode() if isinstance(text, str) else text for case, (text, _, _) in READ.items()},
    **{case: text.encode() for case, text in REFUSED.items()},
    **{name: capture(name) for name in PAGES},
}
OWN_LABELS = {"__name__", "case", "instance", "job"}
OWN_SERIES = ("up", "scrape_")


def ours(body: bytes) -> dict[str, float] | None:
    try:
        return samples(Parser().parse(body))
    except ScrapeError:
        return None


def identity(labels: dict[str, str]) -> str:
    return labels["__name__"] + "".join(
        f"|{name.removeprefix('exported_')}={value}" for name, value in sorted(labels.items()) if name not in OWN_LABELS
    )


def test_verdict_series_and_values_are_those_of_prometheus(prometheus_binaries: Tool, tmp_path: Path) -> None:
    paths = {f"/{index}": case for index, case in enumerate(BODIES)}
    with served({path: BODIES[case] for path, case in paths.items()}) as address:
        job = {
            "job_name": "pages",
            "honor_timestamps": False,
            "static_configs": [
                {"targets": [address], "labels": {"__metrics_path__": path, "case": case}}
                for path, case in paths.items()
            ],
        }
        with prometheus(prometheus_binaries, tmp_path, [job], "1s") as server:
            server.wait_until(
                lambda one: all(target["health"] != "unknown" for target in one.targets()), "scrape every page"
            )
            server.wait_until(lambda one: len(one.query("up")) == len(BODIES), "store every verdict")
            verdicts = {labels["case"]: value == 1 for labels, value in server.query("up")}
            stored: dict[str, dict[str, float]] = {case: {} for case in BODIES}
            for labels, value in server.query('{case!=""}'):
                if not labels["__name__"].startswith(OWN_SERIES):
                    stored[labels["case"]][identity(labels)] = value
    theirs = {case: stored[case] if verdicts[case] else None for case in BODIES}
    assert all(theirs[case] in (None, {"  a": 1.0}) for case in STRICTER)
    assert {case: theirs[case] for case in BODIES if case not in KINDER | STRICTER} == {
        case: ours(body) for case, body in BODIES.items() if case not in KINDER | STRICTER
    }


@pytest.mark.parametrize("case", sorted(KINDER))
def test_exceptions_on_purpose_are_pages_that_we_can_use(case: str) -> None:
    assert ours(BODIES[case]), "Prometheus loses this page; we keep what is good of it"
