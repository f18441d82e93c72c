"""The drain marker: who may set it, what it changes, how it ends, and what a restart leaves of it."""

import asyncio
import json
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import requests

from exporter.__main__ import main
from exporter.drain import LONGEST, Drains
from running.ports import free_port
from running.processes import Process
from tests.exporter.captured import capture
from tests.exporter.pages import served
from tests.exporter.serving import exporter, write_fleet

TOKEN = "correct-horse-battery-staple"  # noqa: S105 - planted
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    with served({"/metrics": capture("vllm-0.32.0/under-load")}) as address:
        yield f"http://{address}"


@pytest.fixture(scope="module")
def folder(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drain")
    write_fleet(folder / "fleet.yml", vllm_a=engine, gone=f"http://127.0.0.1:{free_port()}")
    (folder / "token").write_text(f"{TOKEN}\n")
    return folder


def options(folder: Path) -> tuple[str, ...]:
    return (
        *("--admin-token-file", str(folder / "token"), "--state-dir", str(folder / "state")),
        *("--min-interval", "1ms"),
    )


@pytest.fixture(scope="module")
def serving(folder: Path) -> Iterator[tuple[str, Process]]:
    with exporter(folder / "fleet.yml", folder / "log", *options(folder)) as (address, process):
        yield address, process


@pytest.fixture(autouse=True)
def no_marker(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "serving" in request.fixturenames:
        address, _ = request.getfixturevalue("serving")
        for name in ("vllm-a", "gone"):
            requests.delete(f"{address}/drain/{name}", headers=BEARER, timeout=30)


def put(address: str, name: str, query: str = "", **headers: str) -> requests.Response:
    return requests.put(f"{address}/drain/{name}{query}", headers={**BEARER, **headers}, timeout=30)


def probe(address: str, name: str) -> str:
    return requests.get(f"{address}/probe?target={name}", timeout=30).text


def listed(address: str) -> list[dict[str, object]]:
    answer = requests.get(f"{address}/drain", timeout=30)
    found: list[dict[str, object]] = answer.json()
    return found


def test_a_marked_replica_that_answers_is_draining_and_still_up(serving: tuple[str, Process]) -> None:
    address, _ = serving
    before = time.time()
    answer = put(address, "vllm-a", "?ttl=30m")
    assert (answer.status_code, answer.json()["survives_restart"]) == (200, True)
    end = datetime.strptime(answer.json()["until"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
    assert before + 1799 <= end <= time.time() + 1800
    page = probe(address, "vllm-a")
    for line in (
        'llm_replica_up{model="tiny"} 1.0',
        'llm_replica_state{model="tiny",state="draining"} 1.0',
        'llm_replica_state{model="tiny",state="ready"} 0.0',
        'llm_replica_draining{model="tiny"} 1.0',
        'llm_requests_running{model="tiny"} 8.0',
    ):
        assert line in page.splitlines()
    [expiry] = [line for line in page.splitlines() if line.startswith("llm_replica_drain_expiry_timestamp_seconds")]
    assert abs(float(expiry.split()[-1]) - end) < 1
    assert "as draining until" in requests.get(address, timeout=30).text


def test_an_unmarked_replica_says_so_and_has_no_expiry(serving: tuple[str, Process]) -> None:
    page = probe(serving[0], "vllm-a")
    assert 'llm_replica_draining{model="tiny"} 0.0' in page
    assert "llm_replica_drain_expiry_timestamp_seconds" not in page


def test_a_marked_replica_that_is_down_is_planned_but_not_up(serving: tuple[str, Process]) -> None:
    address, _ = serving
    put(address, "gone", "?ttl=30m")
    page = probe(address, "gone")
    assert "llm_replica_up 0.0" in page
    assert 'llm_replica_state{state="draining"} 1.0' in page
    assert 'llm_replica_state{state="unreachable"} 0.0' in page
    assert 'llm_replica_scrape_errors_total{reason="refused"} 0.0' not in page
    requests.delete(f"{address}/drain/gone", headers=BEARER, timeout=30)
    assert 'llm_replica_state{state="unreachable"} 1.0' in probe(address, "gone")


def test_removing_a_marker_ends_the_drain_and_doing_it_twice_is_no_error(serving: tuple[str, Process]) -> None:
    address, _ = serving
    put(address, "vllm-a", "?ttl=30m")
    assert [drain["replica"] for drain in listed(address)] == ["vllm-a"]
    for was in (True, False):
        answer = requests.delete(f"{address}/drain/vllm-a", headers=BEARER, timeout=30)
        assert (answer.status_code, answer.json()) == (200, {"replica": "vllm-a", "was_draining": was})
    assert listed(address) == []
    assert 'state="ready"} 1.0' in probe(address, "vllm-a")


def test_the_time_may_come_in_a_json_body_and_the_last_one_counts(serving: tuple[str, Process]) -> None:
    address, _ = serving
    put(address, "vllm-a", "?ttl=24h")
    answer = requests.put(f"{address}/drain/vllm-a", headers=BEARER, json={"ttl": "90s"}, timeout=30)
    assert (answer.status_code, answer.json()["seconds_left"] <= 90) == (200, True)


@pytest.mark.parametrize(
    ("query", "body", "sentence"),
    [
        ("", "", "ttl: say once for how long, such as ?ttl=30m, up to 24h; got none"),
        ("?ttl=1h&ttl=2h", "", "ttl: say once for how long, such as ?ttl=30m, up to 24h; got 2 of them"),
        ("?ttl=1h", '{"ttl": "1h"}', "ttl: say once for how long, such as ?ttl=30m, up to 24h; got 2 of them"),
        ("?ttl=soon", "", "ttl: expected a positive duration such as 800ms, 2s or 30d, got 'soon'"),
        ("?ttl=-5m", "", "ttl: expected a positive duration such as 800ms, 2s or 30d, got '-5m'"),
        ("?ttl=0s", "", "ttl: expected a positive duration such as 800ms, 2s or 30d, in whole milliseconds, got '0s'"),
        ("?ttl=1800", "", "ttl: expected a positive duration such as 800ms, 2s or 30d, got '1800'"),
        ("?ttl=25h", "", "ttl: expected at most 24h, got '25h'; mark it again if it takes longer"),
        ("", '{"ttl": 1800}', "ttl: expected a positive duration such as 800ms, 2s or 30d, got 1800"),
        ("", "[", 'body: expected JSON such as {"ttl": "30m"}, or no body and ?ttl=30m'),
        ("", '{"tll": "1h"}', 'body: expected JSON such as {"ttl": "30m"}, or no body and ?ttl=30m'),
    ],
)
def test_a_time_that_makes_no_sense_is_refused_with_a_sentence(
    serving: tuple[str, Process], query: str, body: str, sentence: str
) -> None:
    answer = requests.put(f"{serving[0]}/drain/vllm-a{query}", headers=BEARER, data=body, timeout=30)
    assert (answer.status_code, answer.text) == (400, f"{sentence}\n")
    assert listed(serving[0]) == []


def test_an_unknown_replica_cannot_be_marked(serving: tuple[str, Process]) -> None:
    answer = put(serving[0], "nobody", "?ttl=30m")
    assert (answer.status_code, answer.text) == (404, "No replica is named 'nobody' in the fleet file.\n")


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer \u00fc"]
)
@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_without_the_token_nothing_is_changed(
    serving: tuple[str, Process], folder: Path, method: str, header: str
) -> None:
    address, _ = serving
    put(address, "vllm-a", "?ttl=1h") if method == "DELETE" else None
    before = listed(address)
    answer = requests.request(
        method,
        f"{address}/drain/vllm-a?ttl=30m",
        headers={"Authorization": header.encode()} if header else None,
        timeout=30,
    )
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert len(listed(address)) == len(before)
    assert f"{method} '/drain/vllm-a' by 127.0.0.1 refused" in (folder / "log").read_text()


def test_a_new_token_counts_as_soon_as_its_file_changed(serving: tuple[str, Process], folder: Path) -> None:
    (folder / "token").write_text("another-token\n")
    assert put(serving[0], "vllm-a", "?ttl=1h").status_code == 401
    assert put(serving[0], "vllm-a", "?ttl=1h", Authorization="Bearer another-token").status_code == 200
    (folder / "token").unlink()
    answer = put(serving[0], "vllm-a", "?ttl=1h")
    assert (answer.status_code, "cannot be read" in answer.text) == (403, True)
    (folder / "token").write_text(f"{TOKEN}\n")


def test_who_marked_what_until_when_is_in_the_log_and_the_token_is_not(
    serving: tuple[str, Process], folder: Path
) -> None:
    until = put(serving[0], "vllm-a", "?ttl=30m", **{"X-Forwarded-For": "192.0.2.1"}).json()["until"]
    requests.delete(f"{serving[0]}/drain/vllm-a", headers=BEARER, timeout=30)
    log = (folder / "log").read_text()
    assert f"drain of vllm-a until {until}: marked by 127.0.0.1\n" in log
    assert "drain of vllm-a ended: removed by 127.0.0.1\n" in log
    assert TOKEN not in log


def test_a_drain_ends_by_itself(serving: tuple[str, Process], folder: Path) -> None:
    address, process = serving
    put(address, "vllm-a", "?ttl=500ms")
    process.wait_until(lambda: listed(address) == [], "end the drain", seconds=30)
    assert 'state="ready"} 1.0' in probe(address, "vllm-a")
    process.wait_until(lambda: "its time was up" in (folder / "log").read_text(), "say so", seconds=30)
    kept = folder / "state" / "drains.json"
    process.wait_until(lambda: json.loads(kept.read_text()) == {}, "forget it on disk too", seconds=30)


def test_changes_are_switched_off_unless_a_token_is_given(engine: str, tmp_path: Path) -> None:
    fleet = write_fleet(tmp_path / "fleet.yml", a=engine)
    with exporter(fleet, tmp_path / "log") as (address, _):
        answer = put(address, "a", "?ttl=30m")
        assert answer.status_code == 403
        assert "start the exporter with --admin-token-file FILE" in answer.text
        assert requests.get(f"{address}/drain", timeout=30).json() == []


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_markers_outlive_a_restart_and_a_crash(folder: Path, tmp_path: Path, end: signal.Signals) -> None:
    fleet, log = folder / "fleet.yml", tmp_path / "log"
    state = ("--admin-token-file", str(folder / "token"), "--state-dir", str(tmp_path / "state"))
    with exporter(fleet, log, *state) as (address, process):
        put(address, "vllm-a", "?ttl=30m")
        before = listed(address)
        process.signal(end)
        process.wait()
    with exporter(fleet, log, *state) as (address, _):
        after = listed(address)
        assert 'state="draining"} 1.0' in probe(address, "vllm-a")
    assert [(drain["replica"], drain["until"]) for drain in after] == [("vllm-a", before[0]["until"])]


def test_a_marker_whose_time_passed_while_the_exporter_was_down_is_over(tmp_path: Path) -> None:
    async def scenario() -> None:
        now = 1_000_000.0
        await Drains(tmp_path, lambda: now).mark("a", timedelta(minutes=5), "me")
        assert Drains(tmp_path, lambda: now + 299).of("a") is not None
        assert Drains(tmp_path, lambda: now + 301).of("a") is None

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"a": 3}', '{"a": {"until": "x", "by": "me"}}', '{"a": {"until": NaN, "by": "me"}}']
)
def test_a_file_of_markers_that_cannot_be_used_is_ignored(tmp_path: Path, text: str) -> None:
    (tmp_path / "drains.json").write_text(text)
    assert Drains(tmp_path).all() == {}


def test_no_file_makes_a_drain_last_longer_than_a_request_could(tmp_path: Path) -> None:
    (tmp_path / "drains.json").write_text('{"a": {"until": 1e300, "by": "me"}}')
    drain = Drains(tmp_path, lambda: 1000.0).of("a")
    assert drain is not None
    assert drain.until == 1000 + LONGEST.total_seconds()


def test_the_shell_command_marks_and_unmarks(
    serving: tuple[str, Process], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address, _ = serving
    where = ["--exporter", address, "--token-file", str(folder / "token")]
    assert main(["drain", "vllm-a", "--ttl", "10m", *where]) == 0
    assert capsys.readouterr().out == f"vllm-a is draining until {listed(address)[0]['until']}\n"
    assert main(["undrain", "vllm-a", *where]) == 0
    assert main(["undrain", "vllm-a", *where]) == 0
    assert capsys.readouterr().out == "vllm-a is not draining any more\nvllm-a was not draining\n"


def test_the_shell_command_says_why_it_could_not(
    serving: tuple[str, Process], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = ["--token-file", str(folder / "token")]
    nowhere = f"http://127.0.0.1:{free_port()}"
    fix = "runbooks/drain.md says how to make one, --token-file where it is"
    for arguments, sentence in (
        (["nobody", "--exporter", serving[0], *token], "No replica is named 'nobody' in the fleet file.\n"),
        (["a", "--exporter", nowhere, *token], f"no answer from {nowhere}: [Errno 111] Connection refused\n"),
        (
            ["a", "--token-file", f"{tmp_path}/t"],
            f"token file {tmp_path}/t cannot be read: No such file or directory; {fix}\n",
        ),
    ):
        assert main(["drain", *arguments]) == 1
        assert capsys.readouterr().err == sentence
