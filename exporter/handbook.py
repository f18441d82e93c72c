"""Handbook: the runbooks as pages, so that the link in a notification opens on a phone.

In: Markdown, pictures beside it. Out: HTML, PNG.
"""

import re
from itertools import pairwise
from pathlib import Path

import jinja2
from markdown_it import MarkdownIt

__all__ = ["handbook_page", "handbook_picture"]

_NAME = re.compile(r"[A-Za-z0-9-]{1,100}")
_PICTURE = re.compile(r"[a-z0-9-]{1,100}\.png")
_INDEX = "README"
_LINK_TO_PAGE = re.compile(r'href="(?:runbooks/)?([A-Za-z0-9-]+)\.md(#[^"]*)?"')
_MARKDOWN = MarkdownIt("commonmark").enable("table")
_TEMPLATE = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=jinja2.StrictUndefined
).get_template("handbook.html")


def handbook_page(directory: Path, name: str = _INDEX) -> str | None:
    """Render the runbook of that name, which is its alert's; None if there is none."""
    file = directory / f"{name}.md"
    if not _NAME.fullmatch(name) or not file.is_file():
        return None
    body = _LINK_TO_PAGE.sub(r'href="\1\2"', _rendered(file.read_text(encoding="utf-8")))
    return _TEMPLATE.render(title=name if name != _INDEX else "Runbooks", body=body, is_index=name == _INDEX)


def handbook_picture(directory: Path, name: str) -> bytes | None:
    """Read a picture of the runbooks; None if there is none of that name."""
    file = directory / "pictures" / name
    return file.read_bytes() if _PICTURE.fullmatch(name) and file.is_file() else None


def _rendered(markdown: str) -> str:
    """Render Markdown; a heading can be linked to by its words: `#how-to-see-that-it-is-over`."""
    tokens = _MARKDOWN.parse(markdown)
    for heading, words in pairwise(tokens):
        if heading.type == "heading_open":
            heading.attrSet("id", "-".join(re.findall(r"[a-z0-9]+", words.content.lower())))
    return str(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))
