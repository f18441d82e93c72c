"""The phone's page in a real browser."""

from collections.abc import Iterator

import pytest
import requests
from playwright.sync_api import Browser, Page, expect, sync_playwright

from running import tools
from tests.simulator.processes import phone
from tests.simulator.webhooks import alert, notification

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = tools.find("chromium")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with phone() as started:
        yield started


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    requests.delete(f"{address}/api/messages", timeout=5)
    opened = browser.new_page(viewport={"width": 390, "height": 844})
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    opened.goto(address)
    yield opened
    opened.close()
    assert problems == []


def send(address: str, receiver: str, *alerts: dict[str, object]) -> None:
    answer = requests.post(f"{address}/alertmanager/{receiver}", json=notification(*alerts), timeout=5)
    assert answer.status_code == 200


def test_with_no_message_it_says_so(page: Page) -> None:
    expect(page.locator("#empty")).to_have_text("Nothing has paged.")
    expect(page.locator("#now")).to_have_text("All quiet")
    expect(page.locator("#heartbeat")).to_have_text("No heartbeat yet.")


def test_a_page_and_then_its_resolution_appear_without_a_reload(page: Page, address: str) -> None:
    expect(page.locator("#connection")).to_have_text("live")
    page.evaluate("window.sameDocument = true")
    send(address, "page", alert())
    card = page.locator("article")
    expect(card).to_have_attribute("data-status", "firing")
    expect(card.locator("h2")).to_have_text("LLMModelDown says so")
    expect(page.locator("#now")).to_have_text("1 page firing")
    expect(page.locator("#empty")).to_be_hidden()
    send(address, "page", alert(status="resolved"))
    expect(card).to_have_attribute("data-status", "resolved")
    expect(card).to_have_count(1)
    expect(card.locator(".course")).to_contain_text("Resolved after 3 min 20 s")
    expect(page.locator("#now")).to_have_text("All quiet")
    assert page.evaluate("window.sameDocument")


def test_the_newest_is_on_top_and_tickets_can_be_shown_alone(page: Page, address: str) -> None:
    send(address, "ticket", alert("LLMNoSpareReplica"))
    send(address, "page", alert("LLMModelDown"))
    names = page.locator("article .name")
    expect(names).to_have_text(["LLMModelDown", "LLMNoSpareReplica"])
    expect(page.locator("#now")).to_have_text("1 page and 1 ticket firing")
    page.get_by_role("button", name="Tickets").click()
    expect(names).to_have_text(["LLMNoSpareReplica"])


def test_a_heartbeat_is_a_line_and_not_a_message(page: Page, address: str) -> None:
    send(address, "heartbeat", alert("Watchdog"))
    expect(page.locator("#heartbeat")).to_contain_text("Last heartbeat")
    expect(page.locator("article")).to_have_count(0)


def test_markup_in_an_alert_stays_text(page: Page, address: str) -> None:
    evil = "<img src=x onerror=alert(1)><b>bold</b>"
    links = {"runbook_url": "javascript:alert(1)", "dashboard_url": "http://127.0.0.1:3000/d/model"}
    send(
        address,
        "page",
        alert(evil, annotations={"summary": evil, "description": evil, **links}, labels={"alertname": evil}),
    )
    expect(page.locator("h2")).to_have_text(evil)
    assert page.locator("article img, article b").count() == 0
    expect(page.locator("article a")).to_have_count(1)
    expect(page.locator("article a")).to_have_attribute("href", links["dashboard_url"])


def test_an_open_label_list_stays_open_when_news_come(page: Page, address: str) -> None:
    send(address, "page", alert("A"))
    page.locator("summary").click()
    send(address, "page", alert("B"))
    expect(page.locator("article")).to_have_count(2)
    expect(page.locator("article[data-alertname=A] dd").first).to_be_visible()


@pytest.mark.parametrize("width", [320, 390, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_off_at_any_width(page: Page, address: str, width: int, scheme: str) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    send(address, "page", alert(annotations={"summary": "x" * 200, "description": "many words " * 60}))
    expect(page.locator("article")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert contrast(page, "h2", "article") >= 7
    assert contrast(page, ".course", "article") >= 4.5
    assert contrast(page, ".badge", ".badge") >= 4.5


def contrast(page: Page, text: str, ground: str) -> float:
    """Measure the contrast of a text against its ground, as WCAG defines it."""
    script = """([text, ground]) => {
      const light = (colour) => {
        const [r, g, b] = colour.match(/[\\d.]+/g).map((part) => part / 255)
          .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const front = light(getComputedStyle(document.querySelector(text)).color);
      const back = light(getComputedStyle(document.querySelector(ground)).backgroundColor);
      return (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    }"""
    return float(page.evaluate(script, [text, ground]))
