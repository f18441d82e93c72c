"""What a scrape can end in: reasons and states, and which reason means which state.

    ScrapeError            a scrape gave no page that can be used; str() is the sentence for a person

The values are the catalogue's closed label values.
"""

from collections.abc import Mapping
from enum import StrEnum

__all__ = ["REASONS", "STATES", "Reason", "ScrapeError", "State", "sentence_of", "state_of"]


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


STATES: Mapping[State, str] = {
    State.READY: "it answers, and its page can be used",
    State.LOADING: "it takes no requests yet: it answers 503, or its router says that it loads",
    State.SLEEPING: "it gave its memory back, and is up: the next request wakes it",
    State.DRAINING: "it has a drain marker, whether it answers or is down already; `llm_replica_up` says which",
    State.STUCK: "never told by one scrape: LLMReplicaStuck needs to see for minutes that no token comes",
    State.DENIED: "it answers 401 or 403, or the file with its key cannot be used",
    State.DISABLED: "it answers, and its metrics are switched off",
    State.UNREACHABLE: "no complete answer: no connection, no name, no trust, no time; or a proxy says so (502, 504)",
    State.BROKEN: "it answers, and not with a page that can be used",
}
"""What each state says of a replica."""
REASONS: Mapping[Reason, str] = {
    Reason.DNS: "the name of the host is not known",
    Reason.REFUSED: "nothing listens at the address, or no way leads there",
    Reason.RESET: "the connection was closed before the answer",
    Reason.TIMEOUT: "no complete answer before the reader's time was up",
    Reason.TLS: "the certificate is not trusted, or no https is spoken",
    Reason.REDIRECT: "it sends us to another server, or in a circle",
    Reason.AUTH: "it wants a key, or another one",
    Reason.STATUS: "it answers with a status that is neither 200 nor about keys",
    Reason.SIZE: "the page has more bytes or lines than any engine's",
    Reason.ENCODING: "the body is compressed in a way nobody asked for, or not as it says",
    Reason.PARSE: "the answer is no page, or no HTTP",
    Reason.INCOMPLETE: "the page is cut, empty, or lacks the engine's series",
}
"""What each reason says of a failed scrape."""


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
