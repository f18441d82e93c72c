"""The /metrics page of a llama-server b11434 replica: step reports in, the exposition text out.

Its quirks are kept: six significant digits, tokens booked when the slot is released, no histogram, no label, and two
throughput gauges that every reader resets for all others.
"""

from dataclasses import dataclass

from simulator.config import Model
from simulator.sequence import Finished, Gauges, Outcome, Rejection, StepReport

_CONTENT_TYPE = "text/plain; version=0.0.4"

# (name, type, help), in page order
_FAMILIES = (
    ("prompt_tokens_total", "counter", "Number of prompt tokens processed, excluding cached tokens"),
    ("prompt_tokens_cached_total", "counter", "Number of prompt tokens reused from the cache"),
    ("prompt_seconds_total", "counter", "Total time spent processing prompts"),
    ("tokens_predicted_total", "counter", "Number of generation tokens processed"),
    ("tokens_predicted_seconds_total", "counter", "Total time spent generating tokens"),
    (
        *("n_decode_total", "counter"),
        "Total number of llama_decode() calls, excluding speculative decoding and multimodal decoding",
    ),
    ("n_tokens_max", "counter", "Largest observed sequence length (prompt + generation)"),
    ("spec_decode_num_draft_tokens_total", "counter", "Speculative: Total draft tokens generated"),
    (
        *("spec_decode_num_accepted_tokens_total", "counter"),
        "Speculative: Total draft tokens accepted by the target model",
    ),
    ("spec_decode_num_drafts_total", "counter", "Speculative: Total speculative decoding verification steps"),
    ("prompt_tokens_seconds", "gauge", "Average prompt throughput in tokens/s"),
    ("predicted_tokens_seconds", "gauge", "Average generation throughput in tokens/s"),
    ("requests_processing", "gauge", "Number of requests processing"),
    ("requests_deferred", "gauge", "Number of requests deferred"),
    ("n_busy_slots_per_decode", "gauge", "Average number of busy slots per llama_decode() call"),
)


@dataclass(slots=True, kw_only=True)
class _Work:
    """Tokens and the seconds they took."""

    prompt_tokens: int = 0
    prompt_seconds: float = 0.0
    predicted_tokens: int = 0
    predicted_seconds: float = 0.0

    def add(self, other: "_Work") -> None:
        self.prompt_tokens += other.prompt_tokens
        self.prompt_seconds += other.prompt_seconds
        self.predicted_tokens += other.predicted_tokens
        self.predicted_seconds += other.predicted_seconds


class LlamaServerPage:
    """The metrics of one llama-server replica, from its start to its end."""

    def __init__(self, _model: Model, *, started_at: float) -> None:
        self.started_at = started_at
        self._total = _Work()
        self._since_read = _Work()
        self._cached_tokens = 0
        self._decodes = 0
        self._busy_slots = 0
        self._longest = 0

    def record(self, report: StepReport) -> None:
        """Book one step."""
        work = _Work(prompt_tokens=report.computed_prompt_tokens)
        self._cached_tokens += sum(sequence.cached_tokens for sequence in report.admitted)
        self._decodes += 1
        self._busy_slots += report.scheduled_sequences
        for token in report.tokens:
            sequence = token.sequence
            self._longest = max(self._longest, sequence.request.prompt_tokens + token.index)
            if token.gap is None and sequence.scheduled_at is not None:
                work.prompt_seconds += max(0.0, report.at - sequence.scheduled_at)
        for end in report.finished:
            work.add(_generation(end))
        self._total.add(work)
        self._since_read.add(work)

    def publish(self, gauges: Gauges) -> None:
        """Do nothing: llama-server looks at its slots when it is asked."""

    def rejected(self, reason: Rejection) -> None:
        """Do nothing: llama-server has no family for rejections."""

    def answered(self, handler: str, status: int, seconds: float, request_bytes: int) -> None:
        """Do nothing: llama-server has no HTTP families."""

    def render(self, _accept: str, now: Gauges) -> tuple[bytes, str]:
        """Write the page; the throughput gauges start anew for whoever reads next."""
        since, self._since_read = self._since_read, _Work()
        values: dict[str, float] = {
            "prompt_tokens_total": self._total.prompt_tokens,
            "prompt_tokens_cached_total": self._cached_tokens,
            "prompt_seconds_total": self._total.prompt_seconds,
            "tokens_predicted_total": self._total.predicted_tokens,
            "tokens_predicted_seconds_total": self._total.predicted_seconds,
            "n_decode_total": self._decodes,
            "n_tokens_max": self._longest,
            "prompt_tokens_seconds": _ratio(since.prompt_tokens, since.prompt_seconds),
            "predicted_tokens_seconds": _ratio(since.predicted_tokens, since.predicted_seconds),
            "requests_processing": now.running,
            "requests_deferred": now.waiting,
            "n_busy_slots_per_decode": _ratio(self._busy_slots, self._decodes),
        }
        lines: list[str] = []
        for name, kind, text in _FAMILIES:
            full = f"llamacpp:{name}"
            lines += (f"# HELP {full} {text}", f"# TYPE {full} {kind}", f"{full} {values.get(name, 0):.6g}")
        return ("\n".join(lines) + "\n").encode(), _CONTENT_TYPE


def _generation(end: Finished) -> _Work:
    first = end.sequence.first_token_at
    if end.outcome is Outcome.ERROR or first is None:
        return _Work()  # a failed slot is released without being booked
    return _Work(predicted_tokens=end.sequence.generated, predicted_seconds=max(0.0, end.at - first))


def _ratio(amount: float, per: float) -> float:
    return amount / per if per else 0.0
