"""What a llama-server has beside the OpenAI endpoints: /health, /props and /slots."""

from aiohttp import web

from simulator.sequence import Sequence
from simulator.serving import Handler, Surface

BUILD = "b11434-simulated"
_SAMPLING: dict[str, object] = {
    "seed": 4294967295,
    "temperature": 0.800000011920929,
    "dynatemp_range": 0.0,
    "dynatemp_exponent": 1.0,
    "top_k": 40,
    "top_p": 0.949999988079071,
    "min_p": 0.05000000074505806,
    "top_n_sigma": -1.0,
    "xtc_probability": 0.0,
    "xtc_threshold": 0.10000000149011612,
    "typical_p": 1.0,
    "repeat_last_n": 64,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "dry_multiplier": 0.0,
    "dry_base": 1.75,
    "dry_allowed_length": 2,
    "dry_penalty_last_n": 64,
    "mirostat": 0,
    "mirostat_tau": 5.0,
    "mirostat_eta": 0.10000000149011612,
    "adaptive_target": -1.0,
    "adaptive_decay": 0.8999999761581421,
    "max_tokens": -1,
    "n_predict": -1,
    "n_keep": 0,
    "n_discard": 0,
    "ignore_eos": False,
    "stream": False,
    "n_probs": 0,
    "min_keep": 0,
    "chat_format": "Content-only",
    "reasoning_format": "none",
    "reasoning_in_content": False,
    "generation_prompt": "",
    "samplers": ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"],
    "speculative.types": "none",
    "timings_per_token": False,
    "post_sampling_probs": False,
    "backend_sampling": False,
    "lora": [],
}
_CAPABILITIES = {
    "supports_object_arguments": False,
    "supports_parallel_tool_calls": False,
    "supports_preserve_reasoning": False,
    "supports_reasoning_effort": False,
    "supports_string_content": True,
    "supports_system_role": True,
    "supports_tool_calls": False,
    "supports_tools": False,
    "supports_typed_content": False,
}


def endpoints(surface: Surface) -> dict[str, Handler]:
    """List the GET endpoints."""

    async def health(_request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def slots(request: web.Request) -> web.Response:
        described = _slots(surface)
        if "fail_on_no_slot" in request.query and all(slot["is_processing"] for slot in described):
            return surface.error(503, "no slot available")
        return web.json_response(described)

    async def props(_request: web.Request) -> web.Response:
        return web.json_response(_props(surface))

    return {"/health": health, "/v1/health": health, "/slots": slots, "/props": props}


def _slots(surface: Surface) -> list[dict[str, object]]:
    engine = surface.loop.engine
    busy = {sequence.slot: sequence for sequence in engine.running}
    described: list[dict[str, object]] = []
    for number in range(surface.model.limits.slots):
        sequence = busy.get(number) or engine.last_in_slot.get(number)
        slot = {
            "id": number,
            "n_ctx": surface.model.max_model_len,
            "speculative": False,
            "is_processing": number in busy,
        }
        described.append(slot | (_task(sequence, busy=number in busy) if sequence else {}))
    return described


def _task(sequence: Sequence, *, busy: bool) -> dict[str, object]:
    """Describe the task of a slot; of one that has ended only the cached content is left."""
    limit = sequence.request.max_tokens
    decoded = sequence.generated if busy else 0
    prompt_left = max(0, sequence.request.prompt_tokens - sequence.computed)
    processed = sequence.request.prompt_tokens - sequence.cached_tokens - prompt_left
    content = sequence.computed if busy else sequence.request.prompt_tokens + sequence.generated
    return {
        "id_task": int(sequence.request.request_id, 16),
        "n_prompt_tokens": content,
        "n_prompt_tokens_processed": processed if busy else 0,
        "n_prompt_tokens_cache": sequence.cached_tokens if busy else 0,
        "params": {**_SAMPLING, "max_tokens": limit, "n_predict": limit, "stream": True},
        "next_token": [
            {
                "has_next_token": busy,
                "has_new_line": False,
                "n_remain": limit - decoded if busy else -1,
                "n_decoded": decoded,
            }
        ],
    }


def _props(surface: Surface) -> dict[str, object]:
    name = surface.model.name
    return {
        "default_generation_settings": {"params": _SAMPLING, "n_ctx": surface.model.max_model_len},
        "total_slots": surface.model.limits.slots,
        "model_alias": name,
        "model_ftype": "Q8_0",
        "model_path": f"models/{name}.gguf",
        "modalities": {"vision": False, "video": False, "audio": False},
        "media_marker": "<__media__>",
        "endpoint_slots": True,
        "endpoint_props": False,
        "endpoint_metrics": surface.model.metrics,
        "ui": True,
        "ui_settings": {},
        "chat_template": "{%- for message in messages -%}{{- message.content -}}{%- endfor -%}",
        "chat_template_caps": _CAPABILITIES,
        "bos_token": "<s>",
        "eos_token": "</s>",
        "build_info": BUILD,
        "is_sleeping": False,
        "cors_proxy_enabled": False,
    }
