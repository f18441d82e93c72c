"""What travels through the engine model: requests in, sequences inside, reports of steps out. Times are seconds."""

from dataclasses import dataclass, field
from enum import Enum


class Outcome(Enum):
    """How a request ended."""

    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"
    ERROR = "error"


class Rejection(Enum):
    """Why a request was not admitted, in vLLM's words."""

    QUEUED_REQUESTS = "max_num_queued_reqs"
    QUEUED_TOKENS = "max_num_queued_tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request: a prompt, and the answer the model would give to it."""

    request_id: str
    prompt_tokens: int
    answer_tokens: int  # where the model would stop by itself
    max_tokens: int
    prefix: tuple[int, ...] = ()  # chained hashes of the prompt's full blocks

    @property
    def target(self) -> int:
        """Tokens this request will generate when nothing goes wrong."""
        return min(self.answer_tokens, self.max_tokens)


@dataclass(slots=True, kw_only=True, eq=False)
class Sequence:
    """A request inside the engine, with what has been computed of it so far."""

    request: Request
    arrived: float
    fails_at: int | None = None  # the token after which it ends in an error
    slot: int = -1
    computed: int = 0
    generated: int = 0
    cached_tokens: int = 0
    preemptions: int = 0
    scheduled_at: float | None = None
    first_token_at: float | None = None
    last_token_at: float | None = None

    @property
    def remaining(self) -> int:
        """Tokens to compute before the next one can be sampled."""
        return self.request.prompt_tokens + self.generated - self.computed

    @property
    def is_decoding(self) -> bool:
        """Whether the next step yields a token at the price of one."""
        return self.generated > 0 and self.remaining == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token that left the engine; `gap` is the time since the one before it, None for the first."""

    sequence: Sequence
    index: int
    gap: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A sequence that ended in this step."""

    sequence: Sequence
    outcome: Outcome
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """What the engine looks like from outside at one moment."""

    running: int = 0
    waiting: int = 0
    kv_usage: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """Everything that one step did."""

    at: float
    computed_prompt_tokens: int
    scheduled_sequences: int
    tokens: tuple[Token, ...]
    finished: tuple[Finished, ...]
    admitted: tuple[Sequence, ...]  # scheduled for the first time: these query the prefix cache
    preemptions: int
    gauges: Gauges = field(default_factory=Gauges)
