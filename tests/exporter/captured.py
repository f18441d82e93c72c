"""Pages of real engines, and what the exporter makes of them. `python -m tests.exporter.captured` rewrites the goldens.

Rewriting is an explicit act: look at the difference, every number in it is a claim about a real engine.
"""

import json
from pathlib import Path

from exporter.engines import ENGINES
from exporter.failures import State
from exporter.normalise import Normaliser, recognise
from exporter.objectives import Slos
from exporter.parse import Page, Parser
from exporter.status import Serving, Status, status_text

CAPTURES = Path(__file__).parents[1] / "fixtures" / "captures"
GOLDEN = Path(__file__).parent / "golden"
BESIDE = {
    "llama-server-b11434/under-load": {"/props": "props.json", "/slots": "slots-under-load.json"},
    "llama-server-b11434/sleeping": {"/props": "sleeping-props.json"},
}
"""What other endpoints answered at the same moment, by page and path."""
PAGES = tuple(sorted(str(file.relative_to(CAPTURES).with_suffix("")) for file in CAPTURES.rglob("*.prom")))


def capture(name: str) -> bytes:
    """Answer a captured page, such as vllm-0.32.0/under-load."""
    return (CAPTURES / f"{name}.prom").read_bytes()


def beside(name: str) -> dict[str, object]:
    """Answer the decoded answers of other endpoints beside a captured page."""
    return {
        path: json.loads((CAPTURES / name).with_name(file).read_text()) for path, file in BESIDE.get(name, {}).items()
    }


def exposed(name: str) -> str:
    """Answer the page that the exporter makes of a captured one, with a scrape that took a quarter of a second."""
    parser = Parser()
    page = parser.parse(capture(name))
    engine = recognise(page) or ENGINES["vllm"]
    facts = engine.facts(beside(name))
    added = tuple(parser.series(series, {}) for series in facts.numbers)
    page = Page(series=page.series + added, values=page.values + tuple(facts.numbers.values()), dropped=page.dropped)
    found = Normaliser(Slos()).normalise(page, engine, facts.model)
    status = Status(
        serving=(Serving(model=found.model, up=True, state=State.SLEEPING if found.sleeping else State.READY),),
        duration=0.25,
        errors={},
        dropped=found.dropped,
        version=facts.version,
        missing=found.missing,
        unmapped=len(found.unmapped),
    )
    return status_text(status) + found.text


def golden(name: str) -> Path:
    """Answer the golden file of a captured page."""
    return GOLDEN / f"{name.replace('/', '-')}.prom"


if __name__ == "__main__":
    for each in PAGES:
        golden(each).write_text(exposed(each), encoding="utf-8")
