"""llama-server's way of answering completions: it adds its timings to every answer."""

from simulator.dialect import DONE, Exchange, event, usage
from simulator.sequence import Outcome, Sequence

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    501: "not_supported_error",
    503: "unavailable_error",
}


class LlamaServerDialect:
    """Errors, openings and endings as llama-server b11434 writes them."""

    # llama-server itself queues without limit; 429 is what the proxies in front of it answer.
    rejection_status = 429

    def error(self, status: int, message: str) -> dict[str, object]:
        """Shape an error body."""
        return {"error": {"code": status, "message": message, "type": _TYPES.get(status, "server_error")}}

    def too_long(self, prompt_tokens: int, _max_tokens: int | None, limit: int) -> str | None:
        """Refuse a prompt that fills a slot; an answer that does not fit is cut off instead."""
        if prompt_tokens < limit:
            return None
        return (
            f"request ({prompt_tokens} tokens) exceeds the available context size ({limit} tokens), try increasing it"
        )

    def opening(self, exchange: Exchange) -> bytes:
        """Write the role, which llama-server sends with the first token."""
        if not exchange.chat:
            return b""
        return event(exchange.chunk(choices=[exchange.choice({"role": "assistant", "content": None}, None)]))

    def ending(self, exchange: Exchange, sequence: Sequence, outcome: Outcome) -> bytes:
        """Write the finish reason with the timings, or the error."""
        if outcome is Outcome.ERROR:
            return event(self.error(500, "Compute error."))
        content: object = {} if exchange.chat else ""
        extras = self.extras(sequence)
        final = exchange.chunk(choices=[exchange.choice(content, outcome.value)])
        if not exchange.include_usage:
            return event({**final, **extras}) + DONE
        return event(final) + event(exchange.chunk(choices=[], usage=usage(sequence), **extras)) + DONE

    def extras(self, sequence: Sequence) -> dict[str, object]:
        """Measure the answer, in milliseconds."""
        scheduled = sequence.scheduled_at or sequence.arrived
        first = sequence.first_token_at or scheduled
        last = sequence.last_token_at or first
        prompt_n = sequence.request.prompt_tokens - sequence.cached_tokens
        prompt_ms, predicted_ms = (first - scheduled) * 1000, (last - first) * 1000
        timings = {
            "cache_n": sequence.cached_tokens,
            "prompt_n": prompt_n,
            "prompt_ms": round(prompt_ms, 3),
            "prompt_per_token_ms": _per(prompt_ms, prompt_n),
            "prompt_per_second": _per(prompt_n * 1000, prompt_ms),
            "predicted_n": sequence.generated,
            "predicted_ms": round(predicted_ms, 3),
            "predicted_per_token_ms": _per(predicted_ms, sequence.generated),
            "predicted_per_second": _per(sequence.generated * 1000, predicted_ms),
        }
        return {"timings": timings}


def _per(amount: float, per: float) -> float:
    return round(amount / per, 3) if per else 0.0
