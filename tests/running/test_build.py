"""`make tools` builds only what is missing, and says how to go on where it cannot."""

from pathlib import Path

import pytest

from running import build, paths
from running.errors import BuildFailedError


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Answer an empty directory for built programs, on a machine without Go."""
    monkeypatch.setattr(build, "BUILT", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    return tmp_path


def _script(path: Path, says: str) -> None:
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)


@pytest.mark.usefixtures("built")
def test_a_machine_without_go_is_told_the_other_way() -> None:
    with pytest.raises(BuildFailedError, match=r"go is not on PATH, so Alertmanager 0\.35\.0 cannot be built"):
        build.build_missing()


def test_what_is_built_at_our_version_is_not_built_again(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for source in build.SOURCES:
        for program in source.programs:
            _script(built / program, f"{program}, version {source.release} (branch: , revision: )")
    build.build_missing()
    assert "Prometheus 3.16.0 is built: prometheus, promtool in .tools/bin" in capsys.readouterr().out


def test_another_version_is_built_anew(built: Path) -> None:
    for program in ("alertmanager", "amtool"):
        _script(built / program, f"{program}, version 0.34.1")
    assert not build.SOURCES[0].is_built()


def test_nothing_of_a_build_is_kept_in_the_repository() -> None:
    assert "/.tools/" in (paths.ROOT / ".gitignore").read_text().splitlines()
