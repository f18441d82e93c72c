"""vLLM's way of answering completions."""

from simulator.dialect import DONE, Exchange, event, usage
from simulator.sequence import Outcome, Sequence

_TYPES = {400: "BadRequestError", 401: "Unauthorized", 404: "NotFoundError", 503: "ServiceUnavailableError"}


class VllmDialect:
    """Errors, openings and endings as vLLM 0.32 writes them."""

    rejection_status = 503

    def error(self, status: int, message: str) -> dict[str, object]:
        """Shape an error body."""
        kind = _TYPES.get(status, "InternalServerError")
        return {"error": {"message": message, "type": kind, "param": None, "code": status}}

    def too_long(self, prompt_tokens: int, max_tokens: int | None, limit: int) -> str | None:
        """Refuse when prompt and answer together pass the limit."""
        wanted = prompt_tokens + (max_tokens or 1)
        if wanted <= limit:
            return None
        return f"This model's maximum context length is {limit} tokens. However, you requested {wanted} tokens."

    def opening(self, exchange: Exchange) -> bytes:
        """Write the role, which vLLM sends with the first token."""
        if not exchange.chat:
            return b""
        return event(exchange.chunk(choices=[exchange.choice({"role": "assistant", "content": ""}, None)]))

    def ending(self, exchange: Exchange, sequence: Sequence, outcome: Outcome) -> bytes:
        """Write the finish reason, or the error: the status line was sent long ago."""
        if outcome is Outcome.ERROR:
            return event(self.error(500, "EngineCore encountered an issue.")) + DONE
        content: object = {"content": ""} if exchange.chat else ""
        body = event(exchange.chunk(choices=[exchange.choice(content, outcome.value)]))
        if exchange.include_usage:
            body += event(exchange.chunk(choices=[], usage=usage(sequence)))
        return body + DONE

    def extras(self, _sequence: Sequence) -> dict[str, object]:
        """Add nothing."""
        return {}
