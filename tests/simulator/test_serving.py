"""The endpoints answer as the engines do."""

import asyncio
import json
from typing import Any

import pytest

from tests.simulator.small_fleet import CHAT, Json, running


def events(text: str) -> list[Any]:
    data = [line.removeprefix("data: ") for line in text.splitlines() if line]
    assert data.pop() == "[DONE]"
    return [json.loads(item) for item in data]


def words(chunks: list[Any]) -> list[str]:
    return [text for chunk in chunks for choice in chunk["choices"] if (text := choice["delta"].get("content"))]


@pytest.mark.parametrize("replica", ["v", "l"])
def test_a_stream_has_a_role_every_token_a_reason_the_usage_and_an_end(replica: str) -> None:
    async def scenario() -> list[Any]:
        async with running() as fleet:
            body = {**CHAT, "stream": True, "ignore_eos": True, "stream_options": {"include_usage": True}}
            status, text = await fleet.post(replica, body)
            assert status == 200
            return events(text)

    chunks = asyncio.run(scenario())
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert len(words(chunks)) == 5
    assert [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]][-1] == "length"
    assert chunks[-1]["usage"]["completion_tokens"] == 5
    assert ("timings" in chunks[-1]) == (replica == "l")


def test_without_usage_the_timings_come_with_the_reason() -> None:
    async def scenario() -> list[Any]:
        async with running() as fleet:
            return events((await fleet.post("l", {**CHAT, "stream": True}))[1])

    timings = asyncio.run(scenario())[-1]["timings"]
    assert timings["predicted_n"] == timings["predicted_n"] > 0
    assert timings["predicted_per_second"] > 0


@pytest.mark.parametrize("replica", ["v", "l"])
def test_an_answer_that_is_not_streamed_is_whole(replica: str) -> None:
    async def scenario() -> Json:
        async with running() as fleet:
            return json.loads((await fleet.post(replica, {**CHAT, "ignore_eos": True}))[1])

    answer = asyncio.run(scenario())
    assert answer["object"] == "chat.completion"
    assert len(answer["choices"][0]["message"]["content"].split()) == 5
    assert answer["usage"] == {
        "prompt_tokens": 4,
        "completion_tokens": 5,
        "total_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


def test_plain_completions_have_text_instead_of_messages() -> None:
    async def scenario() -> tuple[Any, list[Any]]:
        async with running() as fleet:
            body = {"prompt": "one two three", "max_tokens": 4, "ignore_eos": True}
            whole = json.loads((await fleet.post("v", body, "/v1/completions"))[1])
            return whole, events((await fleet.post("v", {**body, "stream": True}, "/v1/completions"))[1])

    whole, streamed = asyncio.run(scenario())
    assert whole["object"] == "text_completion"
    assert "".join(chunk["choices"][0]["text"] for chunk in streamed) == whole["choices"][0]["text"]


@pytest.mark.parametrize(
    ("replica", "body", "status", "said"),
    [
        ("v", {"messages": []}, 400, "messages"),
        ("v", {"messages": [{"content": "x"}]}, 400, "role"),
        ("v", {**CHAT, "max_tokens": 0}, 400, "max_tokens"),
        ("v", {**CHAT, "model": "other"}, 404, "other"),
        ("v", {**CHAT, "max_tokens": 512}, 400, "maximum context length is 512"),
        ("v", [], 400, "JSON object"),
        ("l", {"messages": [{"role": "user", "content": "w " * 600}]}, 400, "available context size (512 tokens)"),
    ],
)
def test_a_request_that_cannot_be_served_is_refused_in_words(
    replica: str, body: object, status: int, said: str
) -> None:
    async def scenario() -> tuple[int, str]:
        async with running() as fleet:
            return await fleet.post(replica, body)

    got, text = asyncio.run(scenario())
    assert got == status
    assert said in json.loads(text)["error"]["message"]


def test_llama_server_serves_any_model_name_and_cuts_answers_at_the_context() -> None:
    async def scenario() -> tuple[int, Any]:
        async with running() as fleet:
            body = {"model": "x", "messages": CHAT["messages"], "max_tokens": 9999, "ignore_eos": True}
            status, text = await fleet.post("l", body)
            return status, json.loads(text)

    status, answer = asyncio.run(scenario())
    assert status == 200
    assert answer["usage"]["total_tokens"] == 512


@pytest.mark.parametrize(
    ("replica", "path", "inside"),
    [
        ("v", "/health", ""),
        ("v", "/version", '"0.32.0"'),
        ("v", "/v1/models", '"max_model_len": 512'),
        ("l", "/health", '"ok"'),
        ("l", "/props", '"total_slots": 4'),
        ("l", "/slots", '"is_processing": false'),
        ("l", "/v1/models", '"llamacpp"'),
    ],
)
def test_the_other_endpoints_answer(replica: str, path: str, inside: str) -> None:
    async def scenario() -> tuple[int, str]:
        async with running() as fleet:
            return await fleet.get(replica, path)

    status, text = asyncio.run(scenario())
    assert status == 200
    assert inside in text


@pytest.mark.parametrize("replica", ["v", "l"])
def test_an_unknown_path_is_404_in_the_engines_shape(replica: str) -> None:
    async def scenario() -> tuple[int, str]:
        async with running() as fleet:
            return await fleet.get(replica, "/nothing")

    status, text = asyncio.run(scenario())
    assert status == 404
    assert json.loads(text)["error"]["code"] == 404


def test_a_busy_slot_shows_its_progress_and_keeps_its_content_afterwards() -> None:
    async def scenario() -> tuple[Any, Any]:
        async with running() as fleet:
            body = {**CHAT, "max_tokens": 60, "stream": True, "ignore_eos": True}
            async with fleet.session.post(fleet.url("l") + "/v1/chat/completions", json=body) as answer:
                await answer.content.readline()
                busy = json.loads((await fleet.get("l", "/slots"))[1])[0]
                await answer.read()
            return busy, json.loads((await fleet.get("l", "/slots"))[1])[0]

    busy, idle = asyncio.run(scenario())
    assert busy["is_processing"]
    assert busy["next_token"][0]["n_decoded"] >= 1
    assert busy["next_token"][0]["n_decoded"] + busy["next_token"][0]["n_remain"] == 60
    assert not idle["is_processing"]
    assert idle["n_prompt_tokens"] == 4 + 60
    assert idle["n_prompt_tokens_processed"] == 0


def test_slots_can_be_asked_to_fail_when_none_is_free() -> None:
    async def scenario() -> int:
        async with running(slots=1) as fleet:
            body = {**CHAT, "max_tokens": 200, "stream": True, "ignore_eos": True}
            async with fleet.session.post(fleet.url("l") + "/v1/chat/completions", json=body) as answer:
                await answer.content.readline()
                return (await fleet.get("l", "/slots?fail_on_no_slot=1"))[0]

    assert asyncio.run(scenario()) == 503


def test_llama_server_without_metrics_says_501_and_still_serves() -> None:
    async def scenario() -> tuple[int, str, int]:
        async with running(metrics=False) as fleet:
            status, text = await fleet.get("l", "/metrics")
            return status, text, (await fleet.post("l", CHAT))[0]

    status, text, served = asyncio.run(scenario())
    assert (status, served) == (501, 200)
    assert json.loads(text)["error"]["type"] == "not_supported_error"


@pytest.mark.parametrize(
    ("replica", "path", "status"),
    [("v", "/metrics", 200), ("v", "/v1/models", 401), ("l", "/health", 200), ("l", "/metrics", 401)],
)
def test_a_key_guards_what_each_engine_guards(replica: str, path: str, status: int) -> None:
    async def scenario() -> tuple[int, int]:
        async with running(api_key="k") as fleet:
            without = (await fleet.get(replica, path))[0]
            return without, (await fleet.get(replica, path, headers={"Authorization": "Bearer k"}))[0]

    assert asyncio.run(scenario()) == (status, 200)


@pytest.mark.parametrize(
    ("replica", "running_gauge"), [("v", "vllm:num_requests_running"), ("l", "llamacpp:requests_processing")]
)
def test_a_client_that_leaves_aborts_its_request(replica: str, running_gauge: str) -> None:
    async def scenario() -> None:
        async with running() as fleet:
            body = {**CHAT, "max_tokens": 500, "stream": True, "ignore_eos": True}
            async with fleet.session.post(fleet.url(replica) + "/v1/chat/completions", json=body) as answer:
                await answer.content.readline()
                answer.close()
            async with asyncio.timeout(5):
                while await fleet.metric(replica, running_gauge):  # noqa: ASYNC110 - the page is what is asked
                    await asyncio.sleep(0.01)

    asyncio.run(scenario())


def test_an_abort_reaches_no_finished_family_of_vllm() -> None:
    async def scenario() -> tuple[float, float, float]:
        async with running() as fleet:
            body = {**CHAT, "max_tokens": 500, "stream": True, "ignore_eos": True}
            async with fleet.session.post(fleet.url("v") + "/v1/chat/completions", json=body) as answer:
                await answer.content.readline()
                answer.close()
            await fleet.post("v", CHAT)
            return (
                await fleet.metric("v", "vllm:time_to_first_token_seconds_count"),
                await fleet.metric("v", "vllm:request_success_total"),
                await fleet.metric("v", "vllm:e2e_request_latency_seconds_count"),
            )

    assert asyncio.run(scenario()) == (2, 1, 1)


def test_tokens_on_the_page_are_the_tokens_that_were_streamed() -> None:
    async def scenario() -> tuple[int, float]:
        async with running() as fleet:
            texts = await asyncio.gather(*(fleet.post("v", {**CHAT, "stream": True}) for _ in range(6)))
            streamed = sum(len(words(events(text))) for _, text in texts)
            return streamed, await fleet.metric("v", "vllm:generation_tokens_total")

    streamed, counted = asyncio.run(scenario())
    assert streamed == counted > 0
