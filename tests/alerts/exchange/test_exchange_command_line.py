"""The command: what one prints the other reads, and a refusal is a sentence."""

from pathlib import Path

import pytest
import yaml

from alerts.__main__ import main
from exporter.fleet import load
from running.paths import ROOT


def test_an_export_can_be_imported_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = tmp_path / "fleet.yml"
    replicas = (
        "replicas: [{name: a, url: 'http://10.0.0.1:8000', model: org/m}, {name: b, url: 'http://10.0.0.2:8000'}]\n"
    )
    slos = "slos: {window: 28d, models: {org/m: {ttft: {threshold: 800ms, objective: 99.95%}}}}\n"
    fleet.write_text(replicas + slos, encoding="utf-8")
    assert main(["export", "--format", "openslo", "--fleet", str(fleet)]) == 0
    (tmp_path / "openslo.yml").write_text(capsys.readouterr().out, encoding="utf-8")
    assert main(["import", str(tmp_path / "openslo.yml")]) == 0
    again = tmp_path / "again.yml"
    again.write_text(replicas + capsys.readouterr().out, encoding="utf-8")
    assert load(again).slos == load(fleet).slos


def test_sloth_gets_a_document_per_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--format", "sloth", "--fleet", str(ROOT / "fleet.yml")]) == 0
    specs = list(yaml.safe_load_all(capsys.readouterr().out))
    assert [spec["service"] for spec in specs][-1] == "qwen3-8b"
    assert len(specs) == 3


def test_a_specification_for_sloth_is_told_from_openslo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["export", "--format", "sloth", "--fleet", str(ROOT / "fleet.yml")])
    (tmp_path / "sloth.yml").write_text(capsys.readouterr().out)
    assert main(["import", str(tmp_path / "sloth.yml")]) == 1
    said = capsys.readouterr().err
    assert "expected an OpenSLO document (apiVersion: openslo/v1, kind: SLO, Service, DataSource, SLI), got" in said
    assert "got a specification for Sloth (version: prometheus/v1); these are written, not read" in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["import", "none.yml"], "none.yml: cannot be read: No such file or directory; give a file of OpenSLO"),
        (["import", str(ROOT / "fleet.yml")], "expected an OpenSLO document (apiVersion: openslo/v1, "),
        (["export", "--format", "sloth", "--fleet", "none.yml"], "none.yml"),
    ],
)
def test_a_refusal_is_a_sentence(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 1
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (b"target: .nan", "not YAML: .nan is no plain number"),
        (b"target: -.inf", "not YAML: -.inf is no plain number"),
        (b"target: 1:30.5", "not YAML: 1:30.5 is no plain number"),
        (b"[" * 100_000, "not OpenSLO: nested too deeply"),
        (b"\xff\xfe", "expected UTF-8 text"),
    ],
    ids=["not a number", "infinity", "base 60", "deep", "binary"],
)
def test_a_file_that_is_no_openslo_is_named(
    document: bytes, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.yml").write_bytes(document)
    assert main(["import", str(tmp_path / "x.yml")]) == 1
    said = capsys.readouterr().err
    assert "x.yml: " in said
    assert sentence in said
