"""The landing page in a real browser: readable on a phone and on a desk, refreshed by itself, honest when cut off."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from playwright.sync_api import Browser, Page, expect, sync_playwright

from running.ports import free_port
from tests.exporter.captured import capture
from tests.exporter.pages import served
from tests.exporter.serving import exporter, write_fleet

CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.fail("a browser is missing: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def long_names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    tmp_path = tmp_path_factory.mktemp("landing")
    with served({"/metrics": capture("vllm-0.32.0/under-load")}) as engine:
        urls = {
            "vllm_a": f"http://{engine}",
            "a_replica_with_a_very_long_name_in_a_rack_far_away_from_here": f"http://127.0.0.1:{free_port()}",
        }
        with exporter(write_fleet(tmp_path / "fleet.yml", **urls), tmp_path / "log") as (address, _):
            for target in requests.get(f"{address}/targets", timeout=30).json():
                requests.get(f"{address}/probe", params={"target": target["labels"]["replica"]}, timeout=30)
            yield address


def opened(browser: Browser, address: str, width: int, scheme: str = "light") -> Page:
    page = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme).new_page()  # type: ignore[arg-type]
    page.goto(address)
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 390, 720, 861, 1400])
def test_nothing_sticks_out_and_every_state_is_a_word(
    browser: Browser, long_names: str, width: int, scheme: str
) -> None:
    page = opened(browser, long_names, width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(
        "[...document.querySelectorAll('main *')].every(e => e.scrollWidth <= e.clientWidth + 1 || "
        "getComputedStyle(e).display === 'inline' || getComputedStyle(e).display === 'contents')"
    )
    expect(page.locator(".state", has_text="ready")).to_be_visible()
    expect(page.locator(".state", has_text="unreachable")).to_be_visible()


@pytest.mark.parametrize("runbook", ["LLMGoodputCollapse", "LLMReplicaStuck", "LLMModelDown", "drain", "incidents"])
def test_a_phone_shows_the_commands_and_pictures_of_a_runbook_whole(
    browser: Browser, long_names: str, runbook: str
) -> None:
    page = opened(browser, f"{long_names}/runbooks/{runbook}", 390)
    assert page.locator("pre").count() > 0
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate("[...document.querySelectorAll('pre')].every(e => e.scrollWidth <= e.clientWidth)")
    assert page.evaluate("[...document.images].every(e => e.complete && e.naturalWidth > 0)")


def test_the_page_refreshes_itself_and_says_when_the_exporter_is_gone(browser: Browser, tmp_path: Path) -> None:
    pages = {"/metrics": capture("vllm-0.32.0/under-load")}
    with served(pages) as engine:
        fleet = write_fleet(tmp_path / "fleet.yml", a=f"http://{engine}")
        with exporter(fleet, tmp_path / "log", "--min-interval", "1ms") as (address, process):
            page = opened(browser, address, 1400)
            expect(page.get_by_text("not asked yet")).to_be_visible()
            requests.get(f"{address}/probe?target=a", timeout=30)
            expect(page.locator(".state", has_text="ready")).to_be_visible(timeout=8000)
            process.stop()
            expect(page.get_by_text("The exporter does not answer.")).to_be_visible(timeout=8000)
