"""llama-server's router mode: several models behind one replica, asked from a router on a real socket."""

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from exporter.failures import State
from exporter.fleet import load
from exporter.service import Options, Service
from exporter.watch import Outcome
from tests.exporter.captured import CAPTURES, capture
from tests.exporter.sockets import Behaviour, answer, engine, look, path_of, watching

LLAMA = CAPTURES / "llama-server-b11434"
PAGE = capture("llama-server-b11434/under-load")
OTHER_PAGE = PAGE.replace(b"tokens_predicted_total 2524", b"tokens_predicted_total 7")


def captured(name: str) -> bytes:
    return (LLAMA / f"{name}.json").read_bytes()


@dataclass
class Router:
    """A router: the captured list with states of its models changed, and what each model's process answers."""

    states: dict[str, dict[str, Any]] = field(default_factory=dict)
    children: dict[str, Behaviour] = field(default_factory=dict)
    listed: bytes | None = None
    asked: list[str] = field(default_factory=list)
    loaded_by_us: list[str] = field(default_factory=list)

    async def __call__(self, request: bytes, writer: asyncio.StreamWriter) -> None:
        target = path_of(request)
        self.asked.append(target)
        path, _, query = target.partition("?")
        await self._behaviour(path, query)(request, writer)

    def _behaviour(self, path: str, query: str) -> Behaviour:
        if query:
            model = query.removeprefix("model=").partition("&")[0]
            if "autoload=false" not in query:
                self.loaded_by_us.append(model)
            return self._child(path, model)
        if path in {"/props", "/models"}:
            return answer(body=captured("router-props") if path == "/props" else self._list())
        return answer(400, captured("router-metrics-400-no-model"))

    def _child(self, path: str, model: str) -> Behaviour:
        if path == "/metrics":
            return self.children.get(model, answer(400, captured("router-metrics-400-not-loaded")))
        beside = {"/props": "props", "/slots": "slots-under-load"}
        return answer(body=captured(beside[path])) if path in beside else answer(404, b"")

    def _list(self) -> bytes:
        if self.listed is not None:
            return self.listed
        models = json.loads(captured("router-models"))
        template = models["data"][0]
        known = {entry["id"]: entry for entry in models["data"]}
        for name, status in self.states.items():
            entry = known.setdefault(name, {**template, "id": name})
            entry["status"] = {**entry["status"], **status}
        return json.dumps({**models, "data": list(known.values())}).encode()


def both() -> Router:
    """Run tiny-a and tiny-b, each with a page of its own."""
    return Router(
        states={"tiny-b": {"value": "loaded"}},
        children={"tiny-a": answer(body=PAGE), "tiny-b": answer(body=OTHER_PAGE)},
    )


def seen(router: Router, **fields: Any) -> Outcome:  # noqa: ANN401 - fields of a replica
    return look(router, **{"model": None, "engine": "llama-server", **fields})


def states(page: str) -> dict[str, str]:
    """Answer the state of each model on a page."""
    lines = [line for line in page.splitlines() if line.startswith("llm_replica_state{") and line.endswith(" 1.0")]
    return {line.split('model="')[1].split('"')[0]: line.split('state="')[1].split('"')[0] for line in lines}


def test_each_loaded_model_has_its_own_series() -> None:
    outcome = seen(both())
    assert 'llm_generation_tokens_total{model="tiny-a"} 2524.0' in outcome.page
    assert 'llm_generation_tokens_total{model="tiny-b"} 7.0' in outcome.page
    assert 'llm_request_slots{model="tiny-b"} 4.0' in outcome.page
    assert (outcome.state, outcome.up, outcome.running, outcome.waiting) == (State.READY, True, 8, 30)


def test_series_of_one_metric_stand_together() -> None:
    lines = seen(both()).page.splitlines()
    heads = [line for line in lines if line.startswith("# TYPE")]
    assert len(heads) == len(set(heads))
    at = lines.index('llm_generation_tokens_total{model="tiny-a"} 2524.0')
    assert lines[at + 1] == 'llm_generation_tokens_total{model="tiny-b"} 7.0'


def test_no_question_ever_loads_a_model() -> None:
    router = both()
    router.states["tiny-c"] = {"value": "unloaded"}
    seen(router)
    assert router.loaded_by_us == []
    about_models = [target for target in router.asked if "model=" in target]
    assert about_models
    assert not any("tiny-c" in target for target in about_models), "there is nothing to ask a model that is not loaded"


def test_a_model_that_is_not_loaded_sleeps_and_is_no_error() -> None:
    outcome = seen(Router(children={"tiny-a": answer(body=PAGE)}))
    assert states(outcome.page) == {"tiny-a": "ready", "tiny-b": "sleeping"}
    assert 'llm_replica_up{model="tiny-b"} 1.0' in outcome.page
    assert 'llm_generation_tokens_total{model="tiny-b"}' not in outcome.page
    assert "_total{reason=" in outcome.page
    assert not [
        line for line in outcome.page.splitlines() if "scrape_errors_total{" in line and not line.endswith(" 0.0")
    ]
    assert outcome.state is State.READY


def test_a_router_with_nothing_loaded_is_well_and_asleep() -> None:
    outcome = seen(Router(states={"tiny-a": {"value": "unloaded"}}))
    assert (outcome.state, outcome.up) == (State.SLEEPING, True)


def test_a_router_without_any_model_is_well_and_asleep() -> None:
    outcome = seen(Router(listed=b'{"data":[],"object":"list"}'))
    assert (outcome.state, outcome.up) == (State.SLEEPING, True)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({"value": "loading"}, "loading"),
        ({"value": "downloading"}, "loading"),
        ({"value": "sleeping"}, "sleeping"),
        ({"value": "unloaded", "failed": True, "exit_code": 1}, "broken"),
        ({"value": "of a version to come"}, "broken"),
    ],
)
def test_a_model_is_in_the_state_that_the_router_tells(status: dict[str, Any], state: str) -> None:
    router = Router(states={"tiny-b": status}, children={"tiny-a": answer(body=PAGE), "tiny-b": answer(body=PAGE)})
    assert states(seen(router).page) == {"tiny-a": "ready", "tiny-b": state}
    assert not any(target.startswith("/metrics?model=tiny-b") for target in router.asked)


@pytest.mark.parametrize(
    ("behaviour", "state", "reason"),
    [
        (answer(500, b""), "broken", "status"),
        (answer(501, captured("metrics-501-disabled")), "disabled", "status"),
        (answer(503, b""), "loading", "status"),
        (answer(body=b"<html>"), "broken", "parse"),
    ],
)
def test_a_model_that_fails_costs_its_own_series_only(behaviour: Behaviour, state: str, reason: str) -> None:
    router = both()
    router.children["tiny-b"] = behaviour
    outcome = seen(router)
    assert states(outcome.page) == {"tiny-a": "ready", "tiny-b": state}
    assert 'llm_replica_up{model="tiny-b"} 0.0' in outcome.page
    assert 'llm_generation_tokens_total{model="tiny-a"} 2524.0' in outcome.page
    assert 'llm_generation_tokens_total{model="tiny-b"}' not in outcome.page
    assert f'llm_replica_scrape_errors_total{{reason="{reason}"}} 1.0' in outcome.page
    assert outcome.sentence.startswith("tiny-b: ")


def test_a_model_that_hangs_does_not_delay_the_others_beyond_the_budget() -> None:
    async def hang(_request: bytes, _writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    router = both()
    router.children["tiny-b"] = hang
    outcome = seen(router, budget=0.5)
    assert states(outcome.page) == {"tiny-a": "ready", "tiny-b": "unreachable"}


def test_a_model_that_was_unloaded_between_list_and_page_sleeps() -> None:
    router = both()
    del router.children["tiny-b"]
    outcome = seen(router)
    assert states(outcome.page) == {"tiny-a": "ready", "tiny-b": "sleeping"}
    assert outcome.sentence == ""


def test_a_router_is_recognised_without_configuration() -> None:
    outcome = seen(both(), engine=None)
    assert (outcome.engine, outcome.up) == ("llama-server", True)


def test_a_configured_model_is_the_only_one_watched() -> None:
    outcome = seen(both(), model="tiny-b")
    assert states(outcome.page) == {"tiny-b": "ready"}
    assert "tiny-a" not in outcome.page


def test_models_of_one_router_may_be_replicas_of_their_own(tmp_path: Path) -> None:
    async def scenario() -> dict[str, Outcome]:
        async with engine(both()) as address:
            file = tmp_path / "fleet.yml"
            file.write_text(
                "replicas:\n"
                f"  - {{name: a, url: 'http://{address}', engine: llama-server, model: tiny-a}}\n"
                f"  - {{name: b, url: 'http://{address}', engine: llama-server, model: tiny-b}}\n"
            )
            service = Service(Options(fleet=file), load(file))
            found = {name: await service.look(watch, 30) for name, watch in service.watches.items()}
            await service.close()
            return found

    found = asyncio.run(scenario())
    assert {name: states(outcome.page) for name, outcome in found.items()} == {
        "a": {"tiny-a": "ready"},
        "b": {"tiny-b": "ready"},
    }
    assert 'llm_generation_tokens_total{model="tiny-b"} 7.0' in found["b"].page


def test_models_whose_long_names_begin_alike_stay_apart() -> None:
    names = [f"{'org/' * 60}{ending}" for ending in ("a", "b")]
    router = Router(
        listed=json.dumps({"data": [{"id": name, "status": {"value": "loading"}} for name in names]}).encode()
    )
    assert len(states(seen(router).page)) == 2


def test_a_model_that_its_proxy_cannot_reach_is_unreachable() -> None:
    router = both()
    router.children["tiny-b"] = answer(502, b"<html>")
    outcome = seen(router)
    assert states(outcome.page) == {"tiny-a": "ready", "tiny-b": "unreachable"}
    assert outcome.sentence.endswith("answered status 502: a proxy answers, the engine behind it does not")


def test_a_configured_model_that_the_router_does_not_list_is_told() -> None:
    outcome = seen(both(), model="tiny-z")
    assert (outcome.up, outcome.state) == (False, State.BROKEN)
    assert outcome.sentence == "the router has no model tiny-z; it lists tiny-a, tiny-b: correct model in fleet.yml"


@pytest.mark.parametrize("listed", [b"[]", b"{}", b'{"data": 3}', b"<html>"])
def test_a_list_that_is_none_is_a_broken_replica(listed: bytes) -> None:
    outcome = seen(Router(listed=listed))
    assert (outcome.up, outcome.state) == (False, State.BROKEN)


def test_odd_entries_of_the_list_are_passed_over() -> None:
    entry = {"id": "tiny-a", "status": {"value": "loaded"}}
    router = Router(
        listed=json.dumps({"data": [3, {}, {"id": 7}, {"id": ""}, entry]}).encode(),
        children={"tiny-a": answer(body=PAGE)},
    )
    assert states(seen(router).page) == {"tiny-a": "ready"}


def test_a_folder_of_hundreds_of_models_keeps_its_loaded_ones_and_a_limit() -> None:
    router = both()
    router.states |= {f"a-{number:03}": {"value": "unloaded"} for number in range(500)}
    outcome = seen(router)
    found = states(outcome.page)
    assert len(found) == 64
    assert (found["tiny-a"], found["tiny-b"]) == ("ready", "ready")
    assert outcome.notes == ("438 more models of the router are not watched: name those that matter in fleet.yml",)
    assert states(seen(router, model="a-499").page) == {"a-499": "sleeping"}


def test_a_models_name_is_quoted_in_the_question() -> None:
    name = "org/model:Q4 &autoload=true"
    quoted = "org%2Fmodel%3AQ4%20%26autoload%3Dtrue"
    router = Router(
        states={name: {"value": "loaded"}}, children={"tiny-a": answer(body=PAGE), quoted: answer(body=PAGE)}
    )
    outcome = seen(router)
    assert f"/metrics?model={quoted}&autoload=false" in router.asked
    assert states(outcome.page)[name] == "ready"


def test_a_router_that_fails_is_missed_for_the_models_that_were_at_work() -> None:
    router = Router(children={"tiny-a": answer(body=PAGE)})

    async def scenario() -> tuple[list[str], Outcome]:
        async with (
            engine(router) as address,
            watching(f"http://{address}", model=None, engine="llama-server") as service,
        ):
            await service.look(service.watches["r"], 30)
            models = list(service.models())
            router.listed = b""
            return models, await service.look(service.watches["r"], 30)

    models, outcome = asyncio.run(scenario())
    assert models == ["tiny-a"]
    assert states(outcome.page) == {"tiny-a": "broken"}
    assert 'llm_replica_up{model="tiny-a"} 0.0' in outcome.page


def test_a_server_that_answers_400_and_is_no_router_is_broken() -> None:
    outcome = look(answer(400, b"{}"), engine="llama-server")
    assert (outcome.up, outcome.state) == (False, State.BROKEN)
