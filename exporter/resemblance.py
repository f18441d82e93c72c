"""Resemblance: what an answer looks like that is no page of metrics. In: its bytes. Out: words for a person. Pure."""

__all__ = ["resemblance"]

_BEGINNINGS: tuple[tuple[tuple[bytes, ...], str], ...] = (
    ((b"\x1f\x8b", b"\x28\xb5\x2f\xfd"), "compressed without saying so"),
    ((b"\xff\xfe", b"\xfe\xff"), "UTF-16 text"),
    ((b"<",), "HTML or XML"),
    ((b"{", b"["), "JSON"),
    ((b'"', b"'", b"b'"), "a page within quotes"),
    ((b"```",), "a page within a code fence"),
)


def resemblance(body: bytes) -> str:
    """Answer what the body of an answer seems to be; empty where nobody can tell."""
    start = body[:64].lstrip()
    return next((words for beginnings, words in _BEGINNINGS if start.startswith(beginnings)), "")
