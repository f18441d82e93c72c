"""Pages built from engines' sources, and what the exporter makes of them.

`python -m tests.exporter.engines.built` rewrites the goldens. Rewriting is an explicit act: look at the difference.
"""

from pathlib import Path

from exporter.dialect import Engine
from exporter.engines import ENGINES
from exporter.normalise import Normalised, Normaliser, recognise
from exporter.objectives import Slos
from exporter.parse import Page, Parser

PAGES = Path(__file__).parents[2] / "fixtures" / "pages"
GOLDEN = Path(__file__).parent / "golden"
NAMES = tuple(sorted(file.stem for file in PAGES.glob("*.prom")))
ENGINE_OF = {"vllm": "vllm", "llama": "llama-server", "sglang": "sglang", "trtllm": "tensorrt-llm", "tgi": "tgi"}
"""The engine of a page by the first part of its name."""


def body(name: str) -> str:
    """Answer the text of a built page, such as sglang-0.5.9."""
    return (PAGES / f"{name}.prom").read_text(encoding="utf-8")


def parsed(text: str) -> Page:
    """Parse a page, as OpenMetrics where it ends so."""
    return Parser().parse(text.encode(), openmetrics=text.endswith("# EOF\n"))


def engine_of(name: str) -> Engine:
    """Answer the engine that a built page belongs to."""
    return ENGINES[ENGINE_OF[name.split("-", maxsplit=1)[0]]]


def normalised(text: str, engine: Engine | None = None, *, slos: Slos | None = None) -> Normalised:
    """Normalise a page as its engine's; the engine is recognised where it is not given."""
    page = parsed(text)
    found = engine or recognise(page)
    assert found is not None, "no engine recognises the page"
    return Normaliser(slos or Slos()).normalise(page, found, None)


def samples(text: str, engine: Engine | None = None) -> dict[str, float]:
    """Answer what a page becomes: values by series, without the label model."""
    split = (line.rpartition(" ") for line in _lines(normalised(text, engine)))
    return {_without_model(series): float(value) for series, _, value in split}


def narrow(name: str) -> str:
    """Answer a golden's text: a verdict, then samples; HELP and TYPE are the catalogue's matter."""
    found = normalised(body(name))
    missing = ", ".join(metric.name for metric in found.missing) or "nothing"
    verdict = (
        f"# {engine_of(name).name}, model {found.model or 'unknown'}, sleeping {found.sleeping}, "
        f"missing {missing}, unmapped {len(found.unmapped)}, dropped {found.dropped}"
    )
    return "".join(f"{line}\n" for line in (verdict, *_lines(found)))


def golden(name: str) -> Path:
    """Answer the golden file of a built page."""
    return GOLDEN / f"{name}.prom"


def _lines(found: Normalised) -> list[str]:
    return [line for line in found.text.splitlines() if line and not line.startswith("#")]


def _without_model(series: str) -> str:
    name, _, labels = series.partition("{")
    kept = [label for label in labels.removesuffix("}").split('",') if label and not label.startswith("model=")]
    inside = '",'.join(label.removesuffix('"') for label in kept)
    return f'{name}{{{inside}"}}' if kept else name


if __name__ == "__main__":
    for each in NAMES:
        golden(each).write_text(narrow(each), encoding="utf-8")
