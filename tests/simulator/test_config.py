"""Configuration is read as meant, or refused with file, key, value and fix."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from simulator.config import EngineKind, load_fleet, parse_fleet
from simulator.fields import ConfigError, parse_seconds
from tests.simulator.small_fleet import document

DEMO = Path("simulator/demo.yml")


def test_the_demo_fleet_is_the_documented_one() -> None:
    fleet = load_fleet(DEMO)
    described = [(replica.name, replica.model.name, replica.port) for replica in fleet.replicas]
    assert described == [
        ("vllm-a", "qwen3-8b", 9811),
        ("vllm-b", "qwen3-8b", 9812),
        ("vllm-c", "qwen3-8b", 9813),
        ("llama-a", "llama-3.2-3b", 9814),
        ("llama-b", "llama-3.2-3b", 9815),
    ]
    assert [replica.model.engine for replica in fleet.replicas].count(EngineKind.VLLM) == 3
    assert {traffic.model for traffic in fleet.traffic} == {"qwen3-8b", "llama-3.2-3b"}


def test_blocks_default_to_a_whole_context_for_every_slot() -> None:
    limits = parse_fleet(document(), "test").replicas[0].model.limits
    assert limits.blocks == 4 * 512 // 16


def changed(path: str, value: object) -> dict[str, Any]:
    """Set one value of a correct document, or remove it with `...`."""
    whole = document()
    whole["load"] = {"models": {"qwen": {"rate": 1, "prompt_tokens": 10, "max_tokens": 20}}}
    *outer, last = path.split(".")
    place: Any = whole
    for key in outer:
        place = place[int(key)] if key.isdecimal() else place[key]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return whole


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("replicas", [], "f.yml: replicas: expected a list with at least one entry, got []"),
        ("replicas.0.model", "x", "f.yml: replicas[0].model: expected one of qwen, llama, got 'x'"),
        ("replicas.1.name", "v", "f.yml: replicas[1].name: 'v' is taken; every replica needs its own"),
        ("replicas.1.name", "V A", "f.yml: replicas[1].name: expected a name of lower-case letters"),
        ("replicas.0.port", 70000, "f.yml: replicas[0].port: expected a whole number from 0 to 65535, got 70000"),
        ("replicas.0.zone", "a", "f.yml: replicas[0]: unknown key 'zone'; expected one of name, model, port, seed"),
        ("models.qwen.engine", "sglang", "f.yml: models.qwen.engine: expected one of vllm, llama-server, got 'sglang'"),
        ("models.qwen.slots", 0, "f.yml: models.qwen.slots: expected a whole number of at least 1, got 0"),
        ("models.qwen.slots", True, "f.yml: models.qwen.slots: expected a whole number of at least 1, got True"),
        (
            "models.qwen.loading",
            "200",
            "f.yml: models.qwen.loading: expected a duration such as 20ms, 8s or 10m, got '200'",
        ),
        ("models.qwen.step.base", "0s", "f.yml: models.qwen.step.base: expected a duration above zero"),
        ("models.qwen.step", ..., "f.yml: models.qwen.step.base: expected a duration above zero"),
        ("models.qwen.kv_cache", {"blocks": 9}, "f.yml: models.qwen.kv_cache.blocks: expected at least 32"),
        ("models.qwen.metrics", "yes", "f.yml: models.qwen.metrics: expected true or false, got 'yes'"),
        ("models.qwen.api_key", "", "f.yml: models.qwen.api_key: expected text in quotes, got ''"),
        ("models.qwen.max_model_len", ..., "f.yml: models.qwen.max_model_len: expected a whole number"),
        ("models.qwen", 3, "f.yml: models.qwen: expected a mapping, got 3"),
        ("load.models.qwen.rate", -1, "f.yml: load.models.qwen.rate: expected a number of at least 0, got -1"),
        ("load.models.qwen.swing", 2, "f.yml: load.models.qwen.swing: expected a number from 0 to 1, got 2"),
        (
            "load.models.qwen.max_tokens",
            512,
            "f.yml: load.models.qwen.max_tokens: expected less than max_model_len (512)",
        ),
        ("load.models.other", {}, "f.yml: load.models.other: expected one of the models qwen, llama, got 'other'"),
        ("extra", 1, "f.yml: the document: unknown key 'extra'; expected one of models, replicas, load"),
    ],
)
def test_a_mistake_is_named_with_file_key_value_and_fix(path: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_fleet(changed(path, value), "f.yml")
    assert str(caught.value).startswith(message)


def test_two_replicas_cannot_have_the_same_port() -> None:
    whole = document()
    for replica in whole["replicas"]:
        replica["port"] = 9811
    with pytest.raises(ConfigError, match=r"replicas\[1\]\.port: 9811 is taken"):
        parse_fleet(whole, "f.yml")


@pytest.mark.parametrize(("content", "said"), [("a: [", "is not YAML"), ("", "expected a mapping, got None")])
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "f.yml"
    path.write_text(content)
    with pytest.raises(ConfigError, match=said):
        load_fleet(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yml: cannot be read: No such file"):
        load_fleet(tmp_path / "none.yml")


def test_the_demo_file_has_no_key_twice() -> None:
    root = yaml.compose(DEMO.read_text())
    assert root is not None
    names = [key.value for key, _ in root.value]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("20ms", 0.02), ("8s", 8.0), ("1.5m", 90.0), ("1h", 3600.0), ("8", None), ("-1s", None), ("1d", None)],
)
def test_durations_carry_their_unit(text: str, seconds: float | None) -> None:
    assert parse_seconds(text) == (pytest.approx(seconds) if seconds else None)
