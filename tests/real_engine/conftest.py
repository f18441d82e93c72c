"""Fixtures: a model that loads at once, and one that takes its time."""

from pathlib import Path

import pytest

from tests.real_engine import tiny_model

SLOW_VOCABULARY = 200_000  # 200 MB of weights and a long token list: most of a second on any machine


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a model that llama-server loads in a tenth of a second."""
    return tiny_model.write(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture(scope="module")
def slow_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a model that is seen loading; written anew each time, because it is too large to keep."""
    return tiny_model.write(tmp_path_factory.mktemp("slow") / "slow.gguf", vocabulary=SLOW_VOCABULARY)
