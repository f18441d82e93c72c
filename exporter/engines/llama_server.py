"""llama-server (llama.cpp): counters only, no latency histograms; slots and identity come from other endpoints.

Never read: the `*_tokens_seconds` gauges, which every reader resets for all others.

Started without a model it is a router: it runs a process for each model and hands on `/metrics?model=NAME`, which would
load a model that is not loaded, if the question did not say `autoload=false`. A model that is not loaded sleeps: the
next request for it loads it.

A server that sleeps is not asked for its page, since builds until August 2026 wake up for it. Later ones answer from a
snapshot, if their number tells that they are later: https://github.com/ggml-org/llama.cpp/pull/27376
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from exporter import catalogue
from exporter.dialect import Answers, Engine, Extra, Facts, Merge, Reading, Router, Sleep
from exporter.failures import State


def _slots_are_free_to_ask(answers: Answers) -> bool:
    """Ask for slots only where the server said that it is awake: the question alone would wake it."""
    props = answers.get("/props")
    return (
        isinstance(props, dict)
        and props.get("is_sleeping") is not True
        and props.get("endpoint_slots") is not False
        and not _is_router(answers)
    )


def _is_to_rest(answers: Answers) -> bool:
    """Tell that the server sleeps and is not known to be of a build that sleeps on when it is asked for its page."""
    props = answers.get("/props")
    if not isinstance(props, dict) or props.get("is_sleeping") is not True:
        return False
    build = _BUILD.match(str(props.get("build_info")))
    return build is None or int(build[1]) < _SLEEPS_ON


def _is_router(answers: Answers) -> bool:
    props = answers.get("/props")
    return isinstance(props, dict) and props.get("role") == "router"


def _models(listed: Any) -> Mapping[str, State] | None:  # noqa: ANN401 - JSON of a foreign server
    """Read the router's list: which models it can run, and what each is doing; the busy ones first."""
    entries = listed.get("data") if isinstance(listed, dict) else None
    if not isinstance(entries, list):
        return None
    states = {
        entry["id"]: _state(entry.get("status"))
        for entry in entries
        if isinstance(entry, dict) and isinstance(entry.get("id"), str) and entry["id"]
    }
    return dict(sorted(states.items(), key=lambda item: (item[1] is State.SLEEPING, item[0])))


def _state(status: Any) -> State:  # noqa: ANN401 - JSON of a foreign server
    status = status if isinstance(status, dict) else {}
    if status.get("failed") is True:
        return State.BROKEN
    return _STATES.get(str(status.get("value")), State.BROKEN)


def _no_name_yet(answers: Answers) -> bool:
    props = answers.get("/props")
    return not (isinstance(props, dict) and isinstance(props.get("model_alias"), str) and props["model_alias"])


def _facts(answers: Answers) -> Facts:
    numbers: dict[str, float] = {}
    props = answers.get("/props")
    props = props if isinstance(props, dict) else {}
    if isinstance(props.get("is_sleeping"), bool):
        numbers["/props:is_sleeping"] = float(props["is_sleeping"])
    if _is_count(props.get("total_slots")):
        numbers["/props:total_slots"] = float(props["total_slots"])
    numbers.update(_slots(answers.get("/slots")))
    build = props.get("build_info")
    return Facts(
        model=_model(props, answers.get("/v1/models")),
        version=build if isinstance(build, str) else None,
        numbers=numbers,
    )


def _slots(slots: Any) -> dict[str, float]:  # noqa: ANN401 - JSON of a foreign server
    """Count slots and their KV cache, tokens.

    A slot keeps its tokens when its request ends: cached content, which counts as free, as in vLLM.
    """
    if not isinstance(slots, list) or not slots or not all(isinstance(slot, dict) for slot in slots):
        return {}
    numbers = {"/slots:count": float(len(slots))}
    capacity = sum(slot["n_ctx"] for slot in slots if _is_count(slot.get("n_ctx")))
    if capacity > 0:
        numbers["/slots:n_ctx"] = float(capacity)
        used = [slot.get("n_prompt_tokens") for slot in slots if slot.get("is_processing") is True]
        if all(map(_is_count, used)):  # older builds do not tell
            numbers["/slots:used_ratio"] = sum(used) / capacity
    return numbers


def _model(props: dict[str, Any], models: Any) -> str | None:  # noqa: ANN401 - JSON of a foreign server
    alias = props.get("model_alias")
    if isinstance(alias, str) and alias:
        return alias
    listed = models.get("data") if isinstance(models, dict) else None
    names = [entry.get("id") for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    return names[0] if len(names) == 1 and isinstance(names[0], str) and names[0] else None


def _is_count(value: Any) -> bool:  # noqa: ANN401 - JSON of a foreign server
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST


_BUILD = re.compile(r"b([0-9]{1,9})(?![0-9])")
_SLEEPS_ON = 11434
"""The first build that was seen to. Who builds it without its history calls it b0 or b1, which tells nothing."""
_MOST = 2**53
_STATES = {
    "loaded": State.READY,
    "loading": State.LOADING,
    "downloading": State.LOADING,
    "sleeping": State.SLEEPING,
    "unloaded": State.SLEEPING,
}
ENGINE = Engine(
    name="llama-server",
    title="llama-server",
    prefixes=("llamacpp:", "llamacpp_"),
    readings=(
        Reading(metric=catalogue.REQUESTS_RUNNING, names=("requests_processing",)),
        Reading(metric=catalogue.REQUESTS_WAITING, names=("requests_deferred",)),
        Reading(metric=catalogue.REQUEST_SLOTS, names=("/slots:count", "/props:total_slots")),
        Reading(
            metric=catalogue.KV_CACHE_USAGE,
            names=("/slots:used_ratio", "kv_cache_usage_ratio"),
            merge=Merge.MAX,
            note="/slots while awake",
        ),
        Reading(metric=catalogue.KV_CACHE_CAPACITY, names=("/slots:n_ctx",), note="/slots while awake"),
        Reading(
            metric=catalogue.PREFIX_CACHE_QUERIES, names=("prompt_tokens_cached_total",), plus=("prompt_tokens_total",)
        ),
        Reading(metric=catalogue.PREFIX_CACHE_HITS, names=("prompt_tokens_cached_total",)),
        # The engine leaves cached tokens out of its total.
        Reading(metric=catalogue.PROMPT_TOKENS, names=("prompt_tokens_total",), plus=("prompt_tokens_cached_total",)),
        Reading(metric=catalogue.PROMPT_TOKENS_CACHED, names=("prompt_tokens_cached_total",)),
        Reading(metric=catalogue.GENERATION_TOKENS, names=("tokens_predicted_total",), note="booked at finish"),
        Reading(metric=catalogue.PREFILL_SECONDS, names=("prompt_seconds_total",)),
        Reading(metric=catalogue.DECODE_SECONDS, names=("tokens_predicted_seconds_total",), note="booked at finish"),
        Reading(metric=catalogue.SPEC_DECODE_DRAFTS, names=("spec_decode_num_drafts_total",)),
        Reading(metric=catalogue.SPEC_DECODE_DRAFT_TOKENS, names=("spec_decode_num_draft_tokens_total",)),
        Reading(metric=catalogue.SPEC_DECODE_ACCEPTED_TOKENS, names=("spec_decode_num_accepted_tokens_total",)),
    ),
    required=(
        catalogue.REQUESTS_RUNNING,
        catalogue.REQUESTS_WAITING,
        catalogue.PROMPT_TOKENS,
        catalogue.GENERATION_TOKENS,
        catalogue.PREFILL_SECONDS,
        catalogue.DECODE_SECONDS,
    ),
    left_out=(
        "prompt_tokens_seconds",
        "predicted_tokens_seconds",
        "n_decode_total",
        "n_tokens_max",
        "n_past_max",
        "n_busy_slots_per_decode",
        "kv_cache_tokens",
        "spec_decode_num_accepted_tokens_per_pos_total",
    ),
    switch_on="start llama-server with --metrics",
    sleep=Sleep(name="/props:is_sleeping"),
    extras=(
        Extra(path="/props"),
        Extra(path="/slots", when=_slots_are_free_to_ask),
        Extra(path="/v1/models", when=_no_name_yet),
    ),
    facts=_facts,
    router=Router(
        refusal=400,
        is_here=_is_router,
        path="/models",
        models=_models,
        most=64,
        query=lambda model: f"?model={quote(model, safe='', errors='replace')}&autoload=false",
    ),
    is_to_rest=_is_to_rest,
    keep_alive=False,
)
