"""A real llama-server in router mode: scraped without loading anything, and each model by its own counts."""

import re
from collections.abc import Iterator
from pathlib import Path
from shutil import copy

import pytest
import requests

from exporter import catalogue
from tests.real_engine import client, engine
from tests.real_engine.engine import Engine
from tests.real_engine.watch import Exporter, start_exporter, until

TOKENS = 11


@pytest.fixture
def router(model: Path, tmp_path: Path) -> Iterator[Engine]:
    folder = tmp_path / "models"
    folder.mkdir()
    for name in ("tiny-a", "tiny-b"):
        copy(model, folder / f"{name}.gguf")
    llama = engine.start(folder, tmp_path / "llama.log", "--metrics", "--slots")
    with llama.process:
        llama.wait_ready()
        yield llama


def loaded(router: Engine) -> list[str]:
    listed = requests.get(f"{router.url}/models", timeout=5).json()["data"]
    return [entry["id"] for entry in listed if entry["status"]["value"] != "unloaded"]


def states(exporter: Exporter, replica: str = "router") -> dict[str, str]:
    form = rf'^{catalogue.REPLICA_STATE.name}{{model="([^"]+)",state="(\w+)"}} 1\.0$'
    return dict(re.findall(form, exporter.page(replica), re.MULTILINE))


def test_scraping_loads_no_model_and_a_model_at_work_has_its_own_counts(router: Engine, tmp_path: Path) -> None:
    exporter = start_exporter(tmp_path, [{"name": "router", "url": router.url}])
    with exporter.process:
        for _ in range(5):
            assert states(exporter) == {"tiny-a": "sleeping", "tiny-b": "sleeping"}
        assert loaded(router) == []
        client.stream_all(router.url, ["the fox"], tokens=TOKENS, model="tiny-a")
        line = f'{catalogue.GENERATION_TOKENS.name}{{model="tiny-a"}} {TOKENS}.0'
        until(lambda: line in exporter.page("router").splitlines(), "the tokens are counted for their model")
        assert states(exporter) == {"tiny-a": "ready", "tiny-b": "sleeping"}
        assert f'{catalogue.REQUEST_SLOTS.name}{{model="tiny-a"}} 4.0' in exporter.page("router")
        assert loaded(router) == ["tiny-a"]


def test_models_of_one_router_are_replicas_of_their_own(router: Engine, tmp_path: Path) -> None:
    models = ("tiny-a", "tiny-b")
    shared = {"url": router.url, "engine": "llama-server"}
    exporter = start_exporter(tmp_path, [{"name": f"replica-{model}", "model": model, **shared} for model in models])
    with exporter.process:
        client.stream_all(router.url, ["the fox"], tokens=TOKENS, model="tiny-a")
        line = f'{catalogue.GENERATION_TOKENS.name}{{model="tiny-a"}} {TOKENS}.0'
        until(lambda: line in exporter.page("replica-tiny-a").splitlines(), "the tokens are counted for their model")
        assert states(exporter, "replica-tiny-a") == {"tiny-a": "ready"}
        assert states(exporter, "replica-tiny-b") == {"tiny-b": "sleeping"}
        assert loaded(router) == ["tiny-a"]
