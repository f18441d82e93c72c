"""Pages: the PromQL blocks of a Markdown page.

In: a file's name and text. Out: `Written` expressions, one per block.
"""

from markdown_it import MarkdownIt
from markdown_it.token import Token

from prometheus.lint.check import Use
from prometheus.lint.problem import Position
from prometheus.lint.written import Written

__all__ = ["read"]


def read(file: str, text: str) -> tuple[Written, ...]:
    """Read the blocks fenced as `promql`."""
    fences = (token for token in MarkdownIt().parse(text) if token.type == "fence" and token.info.strip() == "promql")
    return tuple(_written(file, text, fence) for fence in fences)


def _written(file: str, text: str, fence: Token) -> Written:
    first = (fence.map or [0])[0] + 1
    lines = text.splitlines()
    body = fence.content.splitlines()
    indent = len(lines[first]) - len(body[0]) if body and first < len(lines) else 0

    def place(offset: int) -> Position:
        within = Position.of(offset, fence.content)
        return Position(line=first + within.line, column=within.column + indent)

    return Written(file=file, text=fence.content, use=Use.LOOK, place=place, top=place(0))
