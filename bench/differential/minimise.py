"""Shrinks a page on which readers differ. In: it, and a question to ask of many pages; out: the smallest found."""

from collections.abc import Awaitable, Callable, Sequence

from bench.differential.exposition import Exposition

__all__ = ["smallest"]

_MOST_ROUNDS = 40
_MOST_CANDIDATES = 500  # a round takes about a second, however few pages it asks about


async def smallest(
    page: Exposition, differs: Callable[[Sequence[Exposition]], Awaitable[Sequence[bool]]]
) -> Exposition:
    """Leave out ever smaller spans while the readers still differ; answer the page itself if they no longer do."""
    span = (len(page.body) + 1) // 2
    for _ in range(_MOST_ROUNDS):
        if not span:
            break
        candidates = _without_a_span(page, span)
        verdicts = await differs(candidates)
        found = next((candidate for candidate, differ in zip(candidates, verdicts, strict=True) if differ), None)
        if found is None:
            span //= 2
        else:
            page = found
    return page


def _without_a_span(page: Exposition, span: int) -> list[Exposition]:
    starts = range(0, len(page.body), span)[:_MOST_CANDIDATES]
    return [
        Exposition(body=page.body[:start] + page.body[start + span :], openmetrics=page.openmetrics) for start in starts
    ]
