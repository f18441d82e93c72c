"""How completions look on the wire: what both engines share of the OpenAI format, and where each goes its own way.

In: tokens and outcomes. Out: server-sent events and JSON bodies.
"""

import json
from dataclasses import dataclass
from typing import Protocol

from simulator.sequence import Outcome, Sequence

DONE = b"data: [DONE]\n\n"
_WORDS = (
    *("the", "queue", "drains", "while", "every", "slot", "decodes", "one", "token", "per", "step", "and", "the"),
    *("cache", "keeps", "prefixes", "warm", "for", "whoever", "asks", "next", "so", "a", "first", "token", "comes"),
    *("soon", "unless", "prompts", "are", "long", "or", "blocks", "run", "out"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One answer in the making."""

    answer_id: str
    created: int
    model: str
    chat: bool
    include_usage: bool

    def choice(self, content: object, finish_reason: str | None) -> dict[str, object]:
        """Shape one streamed choice."""
        body: dict[str, object] = {"delta": content} if self.chat else {"text": content}
        return {"index": 0, **body, "logprobs": None, "finish_reason": finish_reason}

    def chunk(self, **more: object) -> dict[str, object]:
        """Shape one streamed object."""
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        return {"id": self.answer_id, "object": kind, "created": self.created, "model": self.model, **more}

    def whole(self, text: str, finish_reason: str, **more: object) -> dict[str, object]:
        """Shape an answer that is not streamed."""
        kind = "chat.completion" if self.chat else "text_completion"
        body: dict[str, object] = {"message": {"role": "assistant", "content": text}} if self.chat else {"text": text}
        choice = {"index": 0, **body, "logprobs": None, "finish_reason": finish_reason}
        return {
            "id": self.answer_id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": [choice],
            **more,
        }


class Dialect(Protocol):
    """What an engine does in its own way."""

    rejection_status: int

    def error(self, status: int, message: str) -> dict[str, object]:
        """Shape an error body."""
        ...

    def too_long(self, prompt_tokens: int, max_tokens: int | None, limit: int) -> str | None:
        """Say why a request does not fit, if it does not."""
        ...

    def opening(self, exchange: Exchange) -> bytes:
        """Write what precedes the first token of a stream."""
        ...

    def ending(self, exchange: Exchange, sequence: Sequence, outcome: Outcome) -> bytes:
        """Write what follows the last token of a stream."""
        ...

    def extras(self, sequence: Sequence, /) -> dict[str, object]:
        """Give what a whole answer has beside the usage."""
        ...


def event(document: object) -> bytes:
    """Write one server-sent event."""
    return b"data: " + json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode() + b"\n\n"


def word(index: int) -> str:
    """Give the text of the n-th token of an answer."""
    return f" {_WORDS[index % len(_WORDS)]}"


def token_frame(exchange: Exchange) -> tuple[bytes, bytes]:
    """Write the event of a token once, with a gap for its text: most of a token's cost is saved this way."""
    content: object = {"content": "\0"} if exchange.chat else "\0"
    whole = event(exchange.chunk(choices=[exchange.choice(content, None)]))
    before, _, after = whole.partition(b'"\\u0000"')
    return before + b'"', b'"' + after


def usage(sequence: Sequence) -> dict[str, object]:
    """Count the tokens of an answer."""
    prompt = sequence.request.prompt_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": sequence.generated,
        "total_tokens": prompt + sequence.generated,
        "prompt_tokens_details": {"cached_tokens": sequence.cached_tokens},
    }
