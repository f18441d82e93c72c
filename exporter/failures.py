"""What a scrape can end in: reasons and states, and which reason means which state.

    ScrapeError            a scrape gave no page that can be used; str() is the sentence for a person

The values are the catalogue's closed label values.
"""

from collections.abc import Mapping
from enum import StrEnum

__all__ = ["Reason", "ScrapeError", "State", "sentence_of", "state_of"]


class Reason(StrEnum):
    """Why a scrape failed."""

    DNS = "dns"
    REFUSED = "refused"
    RESET = "reset"
    TIMEOUT = "timeout"
    TLS = "tls"
    REDIRECT = "redirect"
    AUTH = "auth"
    STATUS = "status"
    SIZE = "size"
    ENCODING = "encoding"
    PARSE = "parse"
    INCOMPLETE = "incomplete"


class State(StrEnum):
    """The one state a replica is in."""

    READY = "ready"
    LOADING = "loading"
    SLEEPING = "sleeping"
    DRAINING = "draining"
    STUCK = "stuck"
    DENIED = "denied"
    DISABLED = "disabled"
    UNREACHABLE = "unreachable"
    BROKEN = "broken"


class ScrapeError(Exception):
    """A scrape gave no page that can be used."""

    def __init__(self, reason: Reason, sentence: str, *, status: int | None = None, state: State | None = None) -> None:
        """Keep the reason; `status` is the HTTP status if there was one, `state` overrides what the reason implies."""
        super().__init__(sentence)
        self.reason = reason
        self.status = status
        self.state = state


_UNREACHABLE = frozenset({Reason.DNS, Reason.REFUSED, Reason.RESET, Reason.TIMEOUT, Reason.TLS})

_FROM_BETWEEN = frozenset({502, 504, 520, 521, 522, 523, 524})
"""Of a proxy that cannot reach what is behind it, or waits for it in vain; those above 511 are Cloudflare's."""
_BY_STATUS: Mapping[int, State] = {
    404: State.DISABLED,
    501: State.DISABLED,
    503: State.LOADING,
    **dict.fromkeys(_FROM_BETWEEN, State.UNREACHABLE),
}


def state_of(error: ScrapeError) -> State:
    """Tell the state that a failed scrape implies.

    An engine that refuses connections may be gone or may not listen yet: from outside the two are the same, so both
    are unreachable. Only an engine that answers 503 while it loads (llama-server) can be seen loading.
    """
    if error.state is not None:
        return error.state
    if error.reason in _UNREACHABLE:
        return State.UNREACHABLE
    if error.reason is Reason.AUTH:
        return State.DENIED
    if error.status is not None:
        return _BY_STATUS.get(error.status, State.BROKEN)
    return State.BROKEN


def sentence_of(error: ScrapeError) -> str:
    """Say what happened, and who it was that answered where it was not the engine."""
    between = ": a proxy answers, the engine behind it does not" if error.status in _FROM_BETWEEN else ""
    return f"{error}{between}"
