"""The phone takes what Alertmanager sends, once, and keeps it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web

from simulator.phone.app import Phone
from simulator.phone.messages import Message
from simulator.phone.store import Store
from tests.simulator.webhooks import Json, alert, notification


class Client:
    """A phone on a free port with a clock that the test moves."""

    def __init__(self, session: ClientSession, address: str) -> None:
        self.session = session
        self.address = address
        self.now = 1000.0

    async def send(self, body: object, receiver: str = "page") -> tuple[int, Any]:
        self.now += 1
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self.session.post(f"{self.address}/alertmanager/{receiver}", data=data) as answer:
            return answer.status, await answer.json()

    async def messages(self, query: str = "") -> Json:
        async with self.session.get(f"{self.address}/api/messages{query}") as answer:
            return await answer.json()


def on_phone(scenario: Callable[[Client], Awaitable[Json]], store: Path | None = None, *, kept: int = 1000) -> Json:
    async def all_of_it() -> Json:
        async with ClientSession() as session:
            client = Client(session, "")
            phone = Phone(Store(store, kept=kept), clock=lambda: client.now)
            runner = web.AppRunner(phone.application(), access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            host, port = runner.addresses[0][:2]
            client.address = f"http://{host}:{port}"
            try:
                return await scenario(client)
            finally:
                await runner.cleanup()

    return asyncio.run(all_of_it())


def test_firing_and_resolved_are_two_messages_newest_first() -> None:
    async def scenario(client: Client) -> Json:
        await client.send(notification(alert()))
        await client.send(notification(alert(status="resolved")))
        return await client.messages()

    resolved, firing = on_phone(scenario)
    assert (firing["status"], resolved["status"]) == ("firing", "resolved")
    assert firing == {
        "received_at": 1001.0,
        "receiver": "page",
        "status": "firing",
        "alertname": "LLMModelDown",
        "labels": {"alertname": "LLMModelDown", "model": "qwen3-8b", "severity": "page"},
        "annotations": {"summary": "LLMModelDown says so", "description": "0 of 2 replicas answer."},
        "starts_at": "2026-11-29T12:00:00Z",
        "ends_at": "",
        "fingerprint": "f-LLMModelDown",
        "group_key": "{}:{alertname}",
    }
    assert resolved["ends_at"] == "2026-11-29T12:03:20Z"


def test_a_repeated_notification_is_not_news() -> None:
    async def scenario(client: Client) -> Json:
        for _ in range(3):
            await client.send(notification(alert()))
        return await client.messages()

    [only] = on_phone(scenario)
    assert only["received_at"] == 1001.0


def test_the_same_alert_starting_again_is_news() -> None:
    async def scenario(client: Client) -> Json:
        await client.send(notification(alert()))
        await client.send(notification(alert(startsAt="2026-11-29T13:00:00Z")))
        return await client.messages()

    assert len(on_phone(scenario)) == 2


def test_a_group_of_two_hundred_alerts_is_two_hundred_messages() -> None:
    async def scenario(client: Client) -> Json:
        return await client.send(notification(*(alert(f"A{number}") for number in range(200))))

    assert on_phone(scenario) == (200, {"received": 200})


def test_of_a_heartbeat_the_last_one_counts() -> None:
    async def scenario(client: Client) -> Json:
        for _ in range(4):
            await client.send(notification(alert("Watchdog")), "heartbeat")
        return await client.messages("?receiver=heartbeat")

    [only] = on_phone(scenario)
    assert only["received_at"] == 1004.0


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("?receiver=page", ["B", "A"]),
        ("?receiver=ticket", ["C"]),
        ("?alertname=B", ["B"]),
        ("?since=1002", ["C", "B"]),
        ("?receiver=page&since=1002", ["B"]),
        ("?status=resolved", []),
    ],
)
def test_messages_can_be_filtered(query: str, names: list[str]) -> None:
    async def scenario(client: Client) -> Json:
        await client.send(notification(alert("A")))
        await client.send(notification(alert("B")))
        await client.send(notification(alert("C")), "ticket")
        return await client.messages(query)

    assert [message["alertname"] for message in on_phone(scenario)] == names


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?since=yesterday", "since: expected Unix seconds, got 'yesterday'"),
        ("?since=nan", "since: expected Unix seconds, got 'nan'"),
        ("?name=x", "unknown filter 'name'"),
    ],
)
def test_a_filter_that_cannot_work_is_refused(query: str, said: str) -> None:
    async def scenario(client: Client) -> Json:
        return await client.messages(query)

    assert said in on_phone(scenario)["error"]


@pytest.mark.parametrize(
    ("receiver", "body", "status", "said"),
    [
        ("pager", notification(), 404, "there is no receiver 'pager'; there are page, ticket, heartbeat"),
        ("page", b"{", 400, "the body is not JSON"),
        ("page", b"\xff\xfe", 400, "the body is not JSON"),
        ("page", b"[" * 200_000, 400, "the body is not JSON"),
        ("page", [], 400, "the body: expected an object, got list"),
        ("page", {"alerts": []}, 400, "groupKey: expected text, got nothing"),
        ("page", {"groupKey": "g"}, 400, "alerts: expected a list, got nothing"),
        ("page", notification(alert(status="pending")), 400, "alerts[0].status: expected one of firing, resolved"),
        ("page", notification(alert(), alert(fingerprint=3)), 400, "alerts[1].fingerprint: expected text, got int"),
        ("page", notification(alert(labels={"a": 1})), 400, "alerts[0].labels.a: expected text, got int"),
        ("page", notification(alert(annotations=None)), 400, "alerts[0].annotations: expected an object, got nothing"),
    ],
)
def test_a_bad_payload_is_refused_with_a_sentence_and_keeps_nothing(
    receiver: str, body: object, status: int, said: str
) -> None:
    async def scenario(client: Client) -> tuple[tuple[int, Any], Any]:
        return await client.send(body, receiver), await client.messages()

    (got, answer), kept = on_phone(scenario)
    assert got == status
    assert said in answer["error"]
    assert kept == []


def test_an_alert_without_annotations_is_taken() -> None:
    async def scenario(client: Client) -> tuple[int, Any]:
        return await client.send(notification(alert(annotations={}, labels={})))

    assert on_phone(scenario)[0] == 200


def test_messages_outlive_a_restart(tmp_path: Path) -> None:
    async def write(client: Client) -> None:
        await client.send(notification(alert()))
        await client.send(notification(alert(status="resolved")))

    path = tmp_path / "phone.jsonl"
    on_phone(write, path)
    assert [message["status"] for message in on_phone(Client.messages, path)] == ["resolved", "firing"]


def test_a_torn_last_line_costs_only_that_line(tmp_path: Path) -> None:
    async def write(client: Client) -> None:
        await client.send(notification(alert("A")))
        await client.send(notification(alert("B")))

    async def go_on(client: Client) -> Json:
        client.now = 2000
        await client.send(notification(alert("C")))
        return await client.messages()

    path = tmp_path / "phone.jsonl"
    on_phone(write, path)
    path.write_bytes(path.read_bytes()[:-20])
    assert [message["alertname"] for message in on_phone(go_on, path)] == ["C", "A"]
    assert [message["alertname"] for message in on_phone(Client.messages, path)] == ["C", "A"]


def test_a_line_that_nobody_could_have_written_keeps_no_phone_from_starting(tmp_path: Path) -> None:
    path = tmp_path / "phone.jsonl"
    path.write_bytes(b"[" * 200_000 + b"\n\xff\x00\nnull\n")
    assert on_phone(Client.messages, path) == []


def test_the_file_stays_bounded(tmp_path: Path) -> None:
    async def flood(client: Client) -> Json:
        for number in range(100):
            await client.send(notification(alert(f"A{number}")))
        for _ in range(100):
            await client.send(notification(alert("Watchdog")), "heartbeat")
        return await client.messages()

    path = tmp_path / "phone.jsonl"
    assert len(on_phone(flood, path, kept=10)) == 10
    assert len(path.read_text().splitlines()) <= 21
    assert len(on_phone(Client.messages, path, kept=10)) == 10


def test_clearing_forgets_everything_also_in_the_file(tmp_path: Path) -> None:
    async def scenario(client: Client) -> tuple[int, Any]:
        await client.send(notification(alert()))
        async with client.session.delete(f"{client.address}/api/messages") as answer:
            return answer.status, await client.messages()

    path = tmp_path / "phone.jsonl"
    assert on_phone(scenario, path) == (204, [])
    assert on_phone(Client.messages, path) == []


def test_a_listener_is_told_of_news() -> None:
    async def scenario(client: Client) -> list[bytes]:
        async with client.session.get(f"{client.address}/api/events") as stream:
            first = await stream.content.readline()
            await stream.content.readline()
            await client.send(notification(alert()))
            return [first, await stream.content.readline()]

    assert on_phone(scenario) == [b"data: now\n", b"data: news\n"]


def test_newest_first_also_when_two_came_together() -> None:
    store = Store(None)
    common = {"receiver": "page", "status": "firing", "starts_at": "", "ends_at": "", "group_key": ""}
    for name in ("older", "newer"):
        message = Message(received_at=1.0, alertname=name, labels={}, annotations={}, fingerprint=name, **common)
        store.add([message])
    assert [message.alertname for message in store.newest_first()] == ["newer", "older"]


def test_the_page_may_load_nothing_from_elsewhere() -> None:
    async def scenario(client: Client) -> tuple[str, str]:
        async with client.session.get(client.address) as answer:
            return answer.headers["Content-Security-Policy"], await answer.text()

    policy, page = on_phone(scenario)
    assert "default-src 'none'" in policy
    assert "http://" not in page
    assert "https://" not in page
