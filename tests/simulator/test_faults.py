"""Every fault does what it says, heals, and expires."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from simulator.config import parse_fleet
from simulator.faults import KINDS, FaultError, parse_fault
from simulator.fleet import FleetServer
from tests.simulator.small_fleet import CHAT, Json, Running, document, running

LONG = {**CHAT, "max_tokens": 400, "stream": True, "ignore_eos": True}


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 5.0) -> None:
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - the outside of a server has no event to wait for
            await asyncio.sleep(0.01)


async def refused(fleet: Running, replica: str) -> bool:
    try:
        await fleet.get(replica, "/health")
    except aiohttp.ClientConnectorError:
        return True
    except aiohttp.ClientError:
        return False
    return False


async def healthy(fleet: Running, replica: str) -> bool:
    try:
        return (await fleet.get(replica, "/health"))[0] == 200
    except aiohttp.ClientError:
        return False


def in_fleet(scenario: Callable[[Running], Awaitable[Json]], **model: object) -> Json:
    async def all_of_it() -> Json:
        async with running(**model) as fleet:
            return await scenario(fleet)

    return asyncio.run(all_of_it())


@pytest.mark.parametrize("replica", ["v", "l"])
def test_kill_closes_the_port_and_resets_streams(replica: str) -> None:
    async def scenario(fleet: Running) -> None:
        async with fleet.session.post(fleet.url(replica) + "/v1/chat/completions", json=LONG) as answer:
            await answer.content.readline()
            await fleet.give(replica, "kill")
            with pytest.raises(aiohttp.ClientError):
                await answer.read()
        assert await refused(fleet, replica)

    in_fleet(scenario)


def test_a_killed_vllm_is_refused_while_it_loads_and_then_serves_with_counters_at_zero() -> None:
    async def scenario(fleet: Running) -> None:
        await fleet.post("v", CHAT)
        began = await fleet.metric("v", "process_start_time_seconds")
        await fleet.give("v", "kill")
        assert (await fleet.control_call("DELETE", "/replicas/v/faults/kill"))[1]["state"] == "loading"
        assert await refused(fleet, "v")
        await until(lambda: healthy(fleet, "v"))
        assert await fleet.metric("v", "vllm:generation_tokens_total") == 0
        assert await fleet.metric("v", "process_start_time_seconds") > began

    in_fleet(scenario)


def test_a_loading_llama_server_says_503_to_everything_before_it_asks_for_the_key() -> None:
    async def scenario(fleet: Running) -> None:
        await fleet.give("l", "loading", seconds=30)
        for path in ("/health", "/metrics", "/slots", "/v1/models"):
            status, text = await fleet.get("l", path)
            assert (status, "unavailable_error" in text) == (503, True)
        await fleet.control_call("DELETE", "/replicas/l/faults/loading")
        assert (await fleet.get("l", "/health"))[0] == 200
        assert (await fleet.get("l", "/metrics"))[0] == 401

    in_fleet(scenario, api_key="k")


def test_loading_ends_by_itself() -> None:
    async def scenario(fleet: Running) -> None:
        await fleet.give("v", "loading", seconds=0.2)
        assert await refused(fleet, "v")
        await until(lambda: healthy(fleet, "v"))
        _, answer = await fleet.control_call("GET", "/")
        assert [(one["state"], one["faults"]) for one in answer["replicas"]] == [("ready", {})] * 2

    in_fleet(scenario)


@pytest.mark.parametrize(
    ("replica", "gauge"), [("v", "vllm:num_requests_running"), ("l", "llamacpp:requests_processing")]
)
def test_a_hung_engine_is_healthy_and_its_page_is_frozen(replica: str, gauge: str) -> None:
    async def scenario(fleet: Running) -> None:
        stream = asyncio.create_task(fleet.post(replica, LONG))
        await until(lambda: positive(fleet, replica, gauge))
        await fleet.give(replica, "hang")
        before = (await fleet.get(replica, "/metrics"))[1]
        late = asyncio.create_task(fleet.post(replica, CHAT))
        await asyncio.sleep(0.1)  # the time in which nothing must happen
        after = (await fleet.get(replica, "/metrics"))[1]
        assert engine_lines(before) == engine_lines(after)
        assert (await fleet.get(replica, "/health"))[0] == 200
        assert not stream.done()
        assert not late.done()
        await fleet.control_call("DELETE", f"/replicas/{replica}/faults/hang")
        assert (await stream)[1].endswith("data: [DONE]\n\n")
        assert (await late)[0] == 200

    in_fleet(scenario)


async def positive(fleet: Running, replica: str, prefix: str) -> bool:
    return await fleet.metric(replica, prefix) > 0


def engine_lines(page: str) -> list[str]:
    frozen = ("vllm:", "llamacpp:")
    reset_by_reading = ("llamacpp:prompt_tokens_seconds", "llamacpp:predicted_tokens_seconds")
    return [line for line in page.splitlines() if line.startswith(frozen) and not line.startswith(reset_by_reading)]


def test_a_hung_page_never_answers_while_requests_are_served() -> None:
    async def scenario(fleet: Running) -> None:
        await fleet.give("v", "hang_metrics")
        with pytest.raises(asyncio.TimeoutError):
            await fleet.get("v", "/metrics", timeout=aiohttp.ClientTimeout(total=0.2))
        assert (await fleet.post("v", CHAT))[0] == 200
        await fleet.control_call("DELETE", "/replicas/v/faults/hang_metrics")
        assert (await fleet.get("v", "/metrics"))[0] == 200

    in_fleet(scenario)


@pytest.mark.parametrize("fault", ["slow_prefill", "slow_decode"])
def test_slowness_slows_and_heals(fault: str) -> None:
    async def timed(fleet: Running) -> float:
        began = time.monotonic()
        body = {"messages": [{"role": "user", "content": "w " * 300}], "max_tokens": 20, "ignore_eos": True}
        await fleet.post("v", body)
        return time.monotonic() - began

    async def scenario(fleet: Running) -> tuple[float, float]:
        await fleet.give("v", fault, factor=40)
        slow = await timed(fleet)
        await fleet.control_call("DELETE", f"/replicas/v/faults/{fault}")
        return slow, await timed(fleet)

    slow, normal = in_fleet(scenario)
    assert slow > 3 * normal


@pytest.mark.parametrize(("replica", "status"), [("v", 503), ("l", 429)])
def test_a_full_queue_rejects_with_the_engines_status(replica: str, status: int) -> None:
    async def scenario(fleet: Running) -> int:
        await fleet.give(replica, "full_queue")
        return (await fleet.post(replica, CHAT))[0]

    assert in_fleet(scenario) == status


def test_vllm_hides_some_rejections_behind_a_200() -> None:
    async def scenario(fleet: Running) -> tuple[list[tuple[int, str]], float, float]:
        await fleet.give("v", "full_queue")
        answers = [await fleet.post("v", {**CHAT, "stream": True}) for _ in range(60)]
        rejected = await fleet.metric("v", "vllm:admission_rejections_total")
        return answers, rejected, await fleet.metric("v", "vllm:request_success_total")

    answers, rejected, finished = in_fleet(scenario)
    late = [text for status, text in answers if status == 200]
    assert rejected == 60
    assert finished == 0
    assert 5 < len(late) < 40
    assert all('"code":503' in text and text.endswith("data: [DONE]\n\n") for text in late)


def test_few_blocks_cause_preemptions_and_every_request_still_finishes() -> None:
    async def scenario(fleet: Running) -> tuple[float, float, list[int]]:
        await fleet.give("v", "full_kv")
        body = {**CHAT, "max_tokens": 300, "ignore_eos": True}
        answers = await asyncio.gather(*(fleet.post("v", body) for _ in range(4)))
        usage = await fleet.metric("v", "vllm:kv_cache_usage_perc")
        return await fleet.metric("v", "vllm:num_preemptions_total"), usage, [status for status, _ in answers]

    preemptions, usage, statuses = in_fleet(scenario)
    assert preemptions > 0
    assert usage == 0.75
    assert statuses == [200] * 4


def test_a_renamed_family_takes_all_its_series_along() -> None:
    async def scenario(fleet: Running) -> str:
        names = {"from": "vllm:inter_token_latency_seconds", "to": "vllm:token_gap_seconds"}
        await fleet.give("v", "rename_metric", **names)
        return (await fleet.get("v", "/metrics"))[1]

    page = in_fleet(scenario)
    assert "inter_token_latency_seconds" not in page
    for line in ("# TYPE vllm:token_gap_seconds histogram", 'vllm:token_gap_seconds_bucket{engine="0",le="0.01"'):
        assert line in page
    assert "vllm:token_gap_seconds_created{" in page


def test_a_renamed_counter_leaves_longer_names_alone() -> None:
    async def scenario(fleet: Running) -> str:
        await fleet.give(
            "v", "rename_metric", **{"from": "vllm:prompt_tokens_total", "to": "vllm:prefill_tokens_total"}
        )
        return (await fleet.get("v", "/metrics"))[1]

    page = in_fleet(scenario)
    assert "\nvllm:prefill_tokens_total{" in page
    assert "\nvllm:prompt_tokens_by_source_total{" in page
    assert "\nvllm:prompt_tokens_total{" not in page


def test_errors_end_streams_with_an_error_event() -> None:
    async def scenario(fleet: Running) -> tuple[int, str, float]:
        await fleet.give("v", "errors", share=1)
        status, text = await fleet.post("v", {**CHAT, "stream": True})
        failed = 'vllm:request_success_total{engine="0",finished_reason="error"'
        return status, text, await fleet.metric("v", failed)

    status, text, failed = in_fleet(scenario)
    assert status == 200
    assert '"error"' in text
    assert failed == 1


@pytest.mark.parametrize("stale", [True, False])
def test_gauges_stay_at_their_last_value_only_when_they_are_stale(stale: bool) -> None:  # noqa: FBT001 - a table
    async def scenario(fleet: Running) -> float:
        if stale:
            await fleet.give("v", "stale_gauges")
        async with fleet.session.post(fleet.url("v") + "/v1/chat/completions", json=LONG) as answer:
            await answer.content.readline()
            await until(lambda: positive(fleet, "v", "vllm:num_requests_running"))
            answer.close()
        await until(lambda: idle(fleet))
        return await fleet.metric("v", "vllm:num_requests_running")

    async def idle(fleet: Running) -> bool:
        surface = fleet.server.replicas["v"]._surface
        assert surface is not None
        return not surface.loop.engine.running

    assert in_fleet(scenario) == (1 if stale else 0)


def test_a_fault_expires() -> None:
    async def scenario(fleet: Running) -> None:
        status, answer = await fleet.control_call("PUT", "/replicas/v/faults/full_queue?for=0.3")
        assert (status, answer["faults"]["full_queue"]["heals_in"] > 0) == (200, True)
        assert (await fleet.post("v", CHAT))[0] == 503

        async def served() -> bool:
            return (await fleet.post("v", CHAT))[0] == 200

        await until(served)

    in_fleet(scenario)


def test_giving_a_fault_again_replaces_its_expiry() -> None:
    async def scenario(fleet: Running) -> dict[str, Any]:
        await fleet.control_call("PUT", "/replicas/v/faults/slow_decode?for=60", {"factor": 2})
        _, answer = await fleet.control_call("PUT", "/replicas/v/faults/slow_decode", {"factor": 3})
        return dict(answer["faults"])

    assert in_fleet(scenario) == {"slow_decode": {"factor": 3.0}}


def test_a_restart_ends_a_hang_and_keeps_what_does_not_come_from_the_process() -> None:
    async def scenario(fleet: Running) -> None:
        await fleet.give("v", "hang")
        await fleet.give("v", "slow_decode", factor=2)
        assert (await fleet.control_call("POST", "/replicas/v/restart"))[1]["faults"] == {
            "slow_decode": {"factor": 2.0}
        }
        await until(lambda: healthy(fleet, "v"))
        assert (await fleet.post("v", CHAT))[0] == 200

    in_fleet(scenario)


def test_everything_can_be_healed_at_once() -> None:
    async def scenario(fleet: Running) -> dict[str, Any]:
        for fault in ("slow_decode", "full_queue", "hang_metrics"):
            await fleet.give("v", fault)
        return dict((await fleet.control_call("DELETE", "/replicas/v/faults"))[1])

    assert in_fleet(scenario)["faults"] == {}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("PUT", "/replicas/x/faults/kill", None, 404, "there is no replica 'x'; there are v, l"),
        ("PUT", "/replicas/v/faults/melt", None, 404, "there is no fault 'melt'; there are kill, hang,"),
        ("PUT", "/replicas/l/faults/full_kv", None, 400, "llama-server cannot have the fault full_kv"),
        ("PUT", "/replicas/v/faults/slow_decode", {"speed": 3}, 400, "no parameter 'speed'; it takes factor=6.0"),
        ("PUT", "/replicas/v/faults/slow_decode", {"factor": 0.5}, 400, "a number from 1 to 10000, got 0.5"),
        ("PUT", "/replicas/v/faults/errors", {"share": "many"}, 400, "share must be a number from 0 to 1, got 'many'"),
        ("PUT", "/replicas/v/faults/errors", [1], 400, "must be a JSON object"),
        ("PUT", "/replicas/v/faults/full_kv", {"blocks": 3}, 400, "blocks must be from 32"),
        ("PUT", "/replicas/v/faults/full_kv", {"blocks": float("inf")}, 400, "must be a number from 0 to inf, got inf"),
        ("PUT", "/replicas/v/faults/rename_metric", {"from": "a"}, 400, "needs the parameter 'to'"),
        (
            "PUT",
            "/replicas/v/faults/rename_metric",
            {"from": "a", "to": "b"},
            400,
            "no family 'a' on the page; there are",
        ),
        ("PUT", "/replicas/v/faults/hang?for=soon", None, 400, "expected seconds above zero"),
        ("PUT", "/replicas/v/faults/hang?for=0", None, 400, "expected seconds above zero"),
        ("DELETE", "/replicas/v/faults/hang", None, 400, "v does not have the fault 'hang'; it has none"),
        ("GET", "/nothing", None, 404, "nothing here"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(
    method: str, path: str, body: object, status: int, said: str
) -> None:
    async def scenario(fleet: Running) -> tuple[int, Any]:
        return await fleet.control_call(method, path, body)

    got, answer = in_fleet(scenario)
    assert got == status
    assert said in answer["error"]


def test_numbers_may_come_as_text() -> None:
    model = parse_fleet(document(), "test").replicas[0].model
    assert parse_fault("slow_decode", {"factor": "3"}, model).number("factor") == 3
    with pytest.raises(FaultError):
        parse_fault("slow_decode", {"factor": "nan"}, model)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_fault_explains_itself(name: str) -> None:
    assert len(KINDS[name].help) > 20


def test_a_fleet_that_listens_everywhere_gives_addresses_that_its_caller_can_reach() -> None:
    server = FleetServer(parse_fleet(document(), "test"), "0.0.0.0")  # noqa: S104 - the case in question
    try:
        described = server.describe("simulator.example")
    finally:
        for replica in server.replicas.values():
            replica.port.close()
    assert described["replicas"][0]["url"].startswith("http://simulator.example:")


def test_a_crash_of_the_model_is_reported_at_once() -> None:
    async def scenario(fleet: Running) -> str:
        reported: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.set_result(context["message"]))
        surface = fleet.server.replicas["v"]._surface
        assert surface is not None
        surface.loop.engine.running.append(None)  # type: ignore[arg-type]  # a mistake that must not pass in silence
        surface.loop._wake.set()
        return await reported

    assert in_fleet(scenario) == "replica v crashed"
