"""OpenAI's completion requests: JSON bodies in, prompts as words and the wishes of the client out.

The simulator's tokeniser takes each word for a token, and adds two for the frame of each chat message.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass


class BadRequestError(Exception):
    """A body that no engine would take; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What one client asks for."""

    model: str | None
    words: tuple[str, ...]
    max_tokens: int | None
    stream: bool
    include_usage: bool
    ignore_eos: bool


def parse_completion(body: bytes, *, chat: bool) -> Completion:
    """Read the body of /v1/chat/completions or /v1/completions."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"the body is not JSON: {error}") from error
    if not isinstance(document, Mapping):
        raise BadRequestError("the body must be a JSON object")
    model = document.get("model")
    options = document.get("stream_options")
    return Completion(
        model=model if isinstance(model, str) else None,
        words=_chat_words(document) if chat else _prompt_words(document),
        max_tokens=_max_tokens(document),
        stream=document.get("stream") is True,
        include_usage=isinstance(options, Mapping) and options.get("include_usage") is True,
        ignore_eos=document.get("ignore_eos") is True,
    )


def _chat_words(document: Mapping[str, object]) -> tuple[str, ...]:
    messages = document.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequestError("'messages' must be a list with at least one message")
    words: list[str] = []
    for message in messages:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise BadRequestError("each of 'messages' must be an object with a 'role'")
        words += (f"<{message['role']}>", *_content(message.get("content")).split(), "<end>")
    return tuple(words)


def _content(content: object) -> str:
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    raise BadRequestError("the 'content' of a message must be text or a list of parts")


def _prompt_words(document: Mapping[str, object]) -> tuple[str, ...]:
    prompt = document.get("prompt")
    if isinstance(prompt, list) and all(isinstance(token, int) for token in prompt):
        prompt = " ".join(map(str, prompt))
    if not isinstance(prompt, str) or not prompt.split():
        raise BadRequestError("'prompt' must be text that is not empty")
    return tuple(prompt.split())


def _max_tokens(document: Mapping[str, object]) -> int | None:
    for key in ("max_completion_tokens", "max_tokens", "n_predict"):
        value = document.get(key)
        if value is None or value == -1:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise BadRequestError(f"{key!r} must be a whole number of at least 1, got {value!r}")
        return value
    return None
