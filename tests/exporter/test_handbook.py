"""Runbooks as pages: what a link in a notification opens."""

from pathlib import Path

import pytest

from exporter.handbook import handbook_page, handbook_picture

RUNBOOK = """# LLMModelDown

<!-- facts -->

| fact | value |
| --- | --- |
| severity | page |

## How to see it

See [another](LLMReplicaDown.md#meaning) and the [index](README.md).

```sh
curl -s 'http://127.0.0.1:9801/probe?target=a&b'
```
"""


PICTURE = b"\x89PNG\r\n\x1a\n, then anything"


@pytest.fixture
def runbooks(tmp_path: Path) -> Path:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "slow-burn.png").write_bytes(PICTURE)
    (tmp_path / "pictures" / "notes.txt").write_text("no picture")
    (tmp_path / "pictures" / "folder.png").mkdir()
    (tmp_path / "beside.png").write_bytes(b"not in the folder of pictures")
    (tmp_path / "LLMModelDown.md").write_text(RUNBOOK)
    (tmp_path / "README.md").write_text("# Runbooks\n\n- [LLMModelDown](LLMModelDown.md)\n")
    (tmp_path.parent / "secret.md").write_text("not a runbook")
    return tmp_path


def test_a_runbook_is_a_page_with_its_table_and_commands(runbooks: Path) -> None:
    page = handbook_page(runbooks, "LLMModelDown")
    assert page is not None
    assert "<td>severity</td>" in page
    assert "target=a&amp;b" in page
    assert "<title>LLMModelDown" in page


def test_links_between_runbooks_lead_to_pages_not_to_files(runbooks: Path) -> None:
    page = handbook_page(runbooks, "LLMModelDown") or ""
    assert 'href="LLMReplicaDown#meaning"' in page
    assert ".md" not in page


def test_a_heading_can_be_linked_to(runbooks: Path) -> None:
    assert '<h2 id="how-to-see-it">' in (handbook_page(runbooks, "LLMModelDown") or "")


def test_the_index_lists_runbooks(runbooks: Path) -> None:
    assert 'href="LLMModelDown"' in (handbook_page(runbooks) or "")


@pytest.mark.parametrize(
    "name", ["NoSuchAlert", "../secret", "secret/../LLMModelDown", "", ".", "LLMModelDown.md", "A" * 5000]
)
def test_nothing_but_a_runbook_is_served(runbooks: Path, name: str) -> None:
    assert handbook_page(runbooks, name) is None


def test_a_picture_is_served_as_it_is(runbooks: Path) -> None:
    assert handbook_picture(runbooks, "slow-burn.png") == PICTURE


@pytest.mark.parametrize(
    "name",
    [
        "no-such.png",
        "notes.txt",
        "folder.png",
        "../beside.png",
        "..",
        "",
        ".png",
        "slow-burn.png\n",
        "a" * 5000 + ".png",
    ],
)
def test_nothing_but_a_picture_is_served_as_one(runbooks: Path, name: str) -> None:
    assert handbook_picture(runbooks, name) is None
