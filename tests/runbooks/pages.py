"""The runbooks as they are committed. In: files; out: their sections, code blocks and links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PAGES", "ROOT", "Page"]

ROOT = Path(__file__).parents[2]

_BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)]+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page."""

    name: str
    text: str

    def __str__(self) -> str:
        """Answer the name of the page."""
        return self.name

    def blocks(self, language: str) -> Iterator[str]:
        """Yield the code blocks in a language."""
        for indent, found, code in _BLOCK.findall(self.text):
            if found == language:
                yield "\n".join(line.removeprefix(indent) for line in code.splitlines())

    def sections(self) -> dict[str, str]:
        """Answer the text below each heading of the second level."""
        _, *parts = re.split(r"^## ", self.text, flags=re.MULTILINE)
        return {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in parts}

    def links(self) -> Iterator[str]:
        """Yield the links that do not leave the project."""
        yield from (link for link in _LINK.findall(self.text) if "://" not in link)

    def commands(self) -> Iterator[str]:
        """Yield shell commands: lines of sh blocks, and code within a sentence."""
        for block in self.blocks("sh"):
            yield from block.splitlines()
        yield from re.findall(r"(?<!`)`([^`\n]+)`(?!`)", self.text)


PAGES = {path.stem: Page(name=path.stem, text=path.read_text()) for path in sorted((ROOT / "runbooks").glob("*.md"))}
