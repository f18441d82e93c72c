"""A client that streams completions: in, an engine's address and a load; out, what the client itself counted."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import requests

_DATA = b"data: "
_DONE = b"data: [DONE]"
_SILENCE_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One finished stream: tokens as counted from its chunks, and as the engine told this client at its end."""

    chunks: int
    generated: int
    prompt: int
    cached: int


def stream_all(url: str, prompts: list[str], *, tokens: int, key: str = "", model: str = "") -> list[Stream]:
    """Send every prompt at once; each stream ends after exactly so many tokens. A router has to be told the model."""
    asked = {"max_tokens": tokens, **({"model": model} if model else {})}
    with ThreadPoolExecutor(len(prompts)) as pool:
        return list(pool.map(lambda prompt: _stream(url, {"prompt": prompt, **asked}, key), prompts))


def _stream(url: str, asked: dict[str, Any], key: str) -> Stream:
    wanted = {"stream": True, "ignore_eos": True, "stream_options": {"include_usage": True}}
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    body = {**asked, **wanted}
    with requests.post(
        f"{url}/v1/completions", json=body, headers=headers, stream=True, timeout=_SILENCE_SECONDS
    ) as response:
        response.raise_for_status()
        events = list(_events(response.iter_lines()))
    tokens_seen = [event for event in events if event["choices"] and event["choices"][0]["finish_reason"] is None]
    usage = events[-1]["usage"]
    return Stream(
        chunks=len(tokens_seen),
        generated=usage["completion_tokens"],
        prompt=usage["prompt_tokens"],
        cached=usage["prompt_tokens_details"]["cached_tokens"],
    )


def _events(lines: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        if line.startswith(_DATA) and not line.startswith(_DONE):
            event = json.loads(line.removeprefix(_DATA))
            if "error" in event:
                raise AssertionError(f"the engine ended the stream with an error: {event['error']}")
            yield event
