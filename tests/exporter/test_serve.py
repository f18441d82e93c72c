"""The exporter as a process: its HTTP surface, reloads, and its end."""

import re
import signal
import socket
import threading
import time
from collections import UserDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import requests

from exporter.expose import CONTENT_TYPE
from exporter.probe import budget
from running.ports import free_port
from tests.exporter.captured import capture
from tests.exporter.pages import served
from tests.exporter.serving import BUSY, exporter, write_fleet

PAGES = {"/metrics": capture("vllm-0.32.0/under-load")}


def get(address: str, **headers: str) -> requests.Response:
    return requests.get(address, headers=headers, timeout=30)


@pytest.fixture(scope="module")
def engines() -> Iterator[str]:
    with served(PAGES) as address:
        yield f"http://{address}"


@pytest.fixture(scope="module")
def serving(engines: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("serve")
    fleet = write_fleet(folder / "fleet.yml", vllm_a=engines, gone=f"http://127.0.0.1:{free_port()}")
    fleet.write_text(fleet.read_text() + "spare_replicas: 1\nslos: {models: {tiny: {ttft: {threshold: 800ms}}}}\n")
    with exporter(fleet, folder / "log") as (address, _):
        yield address


@pytest.mark.parametrize("path", ["/probe?target=vllm-a", "/probe/?target=vllm-a"])
def test_a_probe_answers_the_normalised_page(serving: str, path: str) -> None:
    answer = get(f"{serving}{path}")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, CONTENT_TYPE)
    assert int(answer.headers["Content-Length"]) == len(answer.content)
    assert 'llm_requests_running{model="tiny"} 8.0' in answer.text
    assert 'llm_time_to_first_token_seconds_bucket{model="tiny",le="0.8"}' in answer.text
    assert answer.text.endswith("\n")
    assert "\r" not in answer.text


def test_a_dead_replica_is_data_not_an_error(serving: str) -> None:
    answer = get(f"{serving}/probe?target=gone")
    assert answer.status_code == 200
    assert "llm_replica_up 0.0" in answer.text
    assert 'llm_replica_state{state="unreachable"} 1.0' in answer.text


@pytest.mark.parametrize("name", ["nobody", "http://127.0.0.1:1/", "../vllm-a", "vllm-a\n", ""])
def test_only_names_of_the_fleet_can_be_probed(serving: str, name: str) -> None:
    answer = requests.get(f"{serving}/probe", params={"target": name}, timeout=30)
    assert answer.status_code == 404
    assert answer.text.startswith("No replica is named")


def test_a_probe_without_a_name_is_told_what_to_say(serving: str) -> None:
    answer = get(f"{serving}/probe")
    assert (answer.status_code, answer.text) == (
        400,
        "Name a replica: /probe?target=NAME. The names are on /targets.\n",
    )


def test_targets_name_this_exporter_and_every_replica(serving: str, engines: str) -> None:
    get(f"{serving}/probe?target=vllm-a")
    answer = get(f"{serving}/targets", Host="exporter-1:9801")
    assert answer.headers["Content-Type"] == "application/json"
    [alive, gone] = answer.json()
    assert alive == {
        "targets": ["exporter-1:9801"],
        "labels": {
            "__metrics_path__": "/probe",
            "__param_target": "vllm-a",
            "replica": "vllm-a",
            "instance": engines.removeprefix("http://"),
            "engine": "vllm",
        },
    }
    assert "engine" not in gone["labels"], "nobody knows it yet"


@pytest.mark.parametrize("path", ["/metrics", "/metrics/"])
def test_metrics_tell_configuration_and_the_exporter_itself(serving: str, path: str) -> None:
    get(f"{serving}/probe?target=vllm-a")
    answer = get(f"{serving}{path}")
    lines = answer.text.splitlines()
    assert answer.headers["Content-Type"] == CONTENT_TYPE
    for line in (
        'llm_slo_threshold_seconds{model="tiny",slo="ttft"} 0.8',
        'llm_slo_objective_ratio{model="tiny",slo="availability"} 0.995',
        "llm_spare_replicas 1.0",
        'llm_fleet_replicas{model="tiny"} 1.0',
        "llm_exporter_fleet_reload_success 1.0",
        'llm_exporter_build_info{version="0.1.0"} 1.0',
    ):
        assert line in lines
    assert "process_resident_memory_bytes" in answer.text
    assert "_created" not in answer.text


@pytest.mark.parametrize("path", ["/-/healthy", "/-/ready"])
def test_health_and_readiness_answer(serving: str, path: str) -> None:
    assert get(f"{serving}{path}").status_code == 200


def test_health_is_answered_while_a_page_of_megabytes_is_read(tmp_path: Path) -> None:
    lines = "".join(f'vllm:new_total{{engine="0",request="{at:0150}"}} 1\n' for at in range(40_000))
    with served({"/metrics": PAGES["/metrics"] + lines.encode()}) as large:
        fleet = write_fleet(tmp_path / "fleet.yml", large=f"http://{large}")
        with exporter(fleet, tmp_path / "log") as (address, _), ThreadPoolExecutor() as pool:
            probe = pool.submit(get, f"{address}/probe?target=large", **{"X-Prometheus-Scrape-Timeout-Seconds": "60"})
            answers = []
            while not probe.done():
                answers.append(get(f"{address}/-/healthy").status_code)
    assert 'llm_replica_up{model="tiny"} 1.0' in probe.result().text
    assert set(answers) == {200}
    assert len(answers) > 3, "nobody waits for the page to be read"


def test_a_reload_is_a_post(serving: str) -> None:
    assert get(f"{serving}/-/reload").status_code == 405


def test_head_is_answered_like_get(serving: str) -> None:
    answer = requests.head(f"{serving}/metrics", timeout=30)
    assert (answer.status_code, answer.content) == (200, b"")


def test_what_prometheus_waits_less_a_margin_is_the_budget() -> None:
    assert budget("3", 10) == 2.5
    assert budget("0.2", 10) == pytest.approx(0.16)
    assert budget(None, 10) == 9.5
    assert budget("86400", 10) == 59.5


@pytest.mark.parametrize("header", ["", "soon", "-1", "0", "nan", "inf", "1e999"])
def test_a_budget_that_makes_no_sense_is_ignored(header: str) -> None:
    assert budget(header, 10) == 9.5


def test_a_probe_of_a_hanging_replica_ends_within_what_prometheus_waits(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        fleet = write_fleet(tmp_path / "fleet.yml", silent=f"http://127.0.0.1:{silent.getsockname()[1]}")
        with exporter(fleet, tmp_path / "log") as (address, _):
            took = []
            for _ in range(3):  # a busy machine may be late, but not always
                start = time.monotonic()
                answer = get(f"{address}/probe?target=silent", **{"X-Prometheus-Scrape-Timeout-Seconds": "2"})
                took.append(time.monotonic() - start)
                if took[-1] < 2:
                    break
            assert 1.5 < min(took) < 2
    assert 'llm_replica_scrape_errors_total{reason="timeout"} 1.0' in answer.text


def test_a_reload_takes_a_good_fleet_and_keeps_the_old_one_instead_of_a_bad_one(engines: str, tmp_path: Path) -> None:
    fleet = write_fleet(tmp_path / "fleet.yml", a=engines)
    with exporter(fleet, tmp_path / "log") as (address, _):
        write_fleet(fleet, a=engines, b=f"http://127.0.0.1:{free_port()}")
        assert requests.post(f"{address}/-/reload", timeout=30).text == "Fleet reloaded.\n"
        assert [target["labels"]["replica"] for target in get(f"{address}/targets").json()] == ["a", "b"]

        write_fleet(fleet, a="nonsense")
        answer = requests.post(f"{address}/-/reload", timeout=30)
        sentence = "fleet.yml:2: replicas[0] (a).url: expected http(s)://host[:port], got 'nonsense'"
        assert (answer.status_code, answer.text.splitlines()[0]) == (400, sentence)
        assert [target["labels"]["replica"] for target in get(f"{address}/targets").json()] == ["a", "b"]
        assert "llm_exporter_fleet_reload_success 0.0" in get(f"{address}/metrics").text
        assert "nonsense" in get(f"{address}/").text

        write_fleet(fleet, a=engines)
        assert requests.post(f"{address}/-/reload", timeout=30).status_code == 200
        assert "llm_exporter_fleet_reload_success 1.0" in get(f"{address}/metrics").text


def test_a_reload_keeps_what_was_counted_of_replicas_that_did_not_change(tmp_path: Path) -> None:
    urls = {"a": f"http://127.0.0.1:{free_port()}", "b": f"http://127.0.0.1:{free_port()}"}
    fleet = write_fleet(tmp_path / "fleet.yml", **urls)
    with exporter(fleet, tmp_path / "log", "--min-interval", "0.001s") as (address, _):
        for name in urls:
            get(f"{address}/probe?target={name}")
        write_fleet(fleet, a=urls["a"], b=f"http://127.0.0.1:{free_port()}")
        requests.post(f"{address}/-/reload", timeout=30)
        pages = {name: get(f"{address}/probe?target={name}").text for name in urls}
    assert 'llm_replica_scrape_errors_total{reason="refused"} 2.0' in pages["a"]
    assert 'llm_replica_scrape_errors_total{reason="refused"} 1.0' in pages["b"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_within_two_seconds_even_while_a_probe_hangs(number: signal.Signals, tmp_path: Path) -> None:
    answers: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        fleet = write_fleet(tmp_path / "fleet.yml", silent=f"http://127.0.0.1:{silent.getsockname()[1]}")
        with exporter(fleet, tmp_path / "log") as (address, process):
            ask = partial(get, f"{address}/probe?target=silent", **{"X-Prometheus-Scrape-Timeout-Seconds": "60"})
            reader = threading.Thread(target=lambda: answers.append(ask().status_code))
            reader.start()
            connection, _ = silent.accept()
            with connection:
                start = time.monotonic()
                process.signal(number)
                assert process.wait(seconds=30) == 0
                took = time.monotonic() - start
            reader.join(30)
    assert took < 2 + BUSY, "the probe would have waited for much longer"
    assert answers == [503], "a probe given up says nothing about the replica"
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_sighup_reads_the_fleet_again(engines: str, tmp_path: Path) -> None:
    fleet = write_fleet(tmp_path / "fleet.yml", a=engines)
    with exporter(fleet, tmp_path / "log") as (address, process):
        write_fleet(fleet, a=engines, b="http://127.0.0.1:1")
        process.signal(signal.SIGHUP)
        process.wait_until(lambda: len(get(f"{address}/targets").json()) == 2, "take the new fleet")
        write_fleet(fleet, a="nonsense")
        process.signal(signal.SIGHUP)
        process.wait_until(
            lambda: "llm_exporter_fleet_reload_success 0.0" in get(f"{address}/metrics").text, "refuse the bad fleet"
        )
        assert len(get(f"{address}/targets").json()) == 2


def test_the_landing_page_shows_the_last_known_state_and_asks_no_engine(tmp_path: Path) -> None:
    asked: list[str] = []

    class Watched(UserDict[str, bytes]):
        def __getitem__(self, path: str) -> bytes:
            asked.append(path)
            return super().__getitem__(path)

    with served(Watched(PAGES)) as engine:
        fleet = write_fleet(tmp_path / "fleet.yml", vllm_a=f"http://{engine}", gone=f"http://127.0.0.1:{free_port()}")
        with exporter(fleet, tmp_path / "log") as (address, _):
            before = get(f"{address}/")
            assert asked == []
            assert "Nobody has asked for a replica yet" in before.text
            get(f"{address}/probe?target=vllm-a")
            get(f"{address}/probe?target=gone")
            seen = len(asked)
            after = get(f"{address}/")
            assert len(asked) == seen
    assert after.headers["Content-Type"].startswith("text/html")
    assert "default-src 'none'" in after.headers["Content-Security-Policy"]
    for words in ("tiny", "vllm-a", "vLLM", "ready", "unreachable", "Connection refused", "1 / 2"):
        assert words in after.text


def test_what_an_engine_says_cannot_break_the_landing_page(tmp_path: Path) -> None:
    evil = capture("vllm-0.32.0/idle-fresh").replace(b"acme/draft-7b", b"<script>alert(1)</script>")
    with served({"/metrics": evil}) as engine:
        fleet = write_fleet(tmp_path / "fleet.yml", a=f"http://{engine}")
        with exporter(fleet, tmp_path / "log") as (address, _):
            assert "<script>alert(1)</script>" in get(f"{address}/probe?target=a").text
            page = get(f"{address}/").text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_runbooks_are_those_of_this_fleet_and_otherwise_those_of_the_checkout(tmp_path: Path) -> None:
    (tmp_path / "LLMModelDown.md").write_text("# facts of this fleet\n")
    fleet = write_fleet(tmp_path / "fleet.yml", a="http://127.0.0.1:1")
    with exporter(fleet, tmp_path / "log", "--runbooks", str(tmp_path)) as (address, _):
        assert "facts of this fleet" in get(f"{address}/runbooks/LLMModelDown").text
        assert "<h1" in get(f"{address}/runbooks/LLMReplicaDown").text
        missing = get(f"{address}/runbooks/NoSuchAlert")
    assert missing.status_code == 404
    assert "No runbook is named 'NoSuchAlert'" in missing.text


def test_pages_show_the_pictures_of_the_checkout_and_nothing_else_is_reached_that_way(tmp_path: Path) -> None:
    fleet = write_fleet(tmp_path / "fleet.yml", a="http://127.0.0.1:1")
    with exporter(fleet, tmp_path / "log", "--runbooks", str(tmp_path)) as (address, _):
        page = get(f"{address}/runbooks/incidents")
        shown = re.findall(r'<img src="(pictures/[^"]+)"', page.text)
        pictures = [get(f"{address}/runbooks/{path}") for path in shown]
        strange = [
            get(f"{address}/runbooks/pictures/{path}")
            for path in (
                "",
                "none.png",
                "..%2FREADME.md",
                "..%2Fpictures%2Fslow-burn.png",
                "%2Fetc%2Fpasswd",
                "a%00.png",
            )
        ]
    assert "img-src 'self'" in page.headers["Content-Security-Policy"]
    assert pictures
    for picture in pictures:
        assert picture.headers["Content-Type"] == "image/png"
        assert picture.content.startswith(b"\x89PNG")
    assert [answer.status_code for answer in strange] == [404] * len(strange)
