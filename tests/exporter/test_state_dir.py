"""The state directory: one exporter's alone; whatever is in it, or cannot be written to it, stops nothing."""

import asyncio
import json
import logging
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import requests

from exporter.drain import Drains
from exporter.fleet import Replica
from exporter.identity import Identities
from running.ports import free_port
from tests.exporter.serving import exporter, write_fleet

GONE = f"http://127.0.0.1:{free_port()}"
REPLICA = Replica(name="a", url=GONE)


def identity(**more: object) -> dict[str, object]:
    return {"a": {"url": GONE, "models": ["m"], "engine": "vllm", **more}}


@pytest.mark.parametrize(
    ("identities", "drains"),
    [
        (identity(engine="\ud800"), {}),
        (identity(models=["half \ud800 a pair", "two\nlines", "m" * 10**6]), {}),
        ({"a": 7, "\ud800": []}, {"a": {"until": 10**400, "by": "x"}}),
        ([], {"a": {"until": 4e9, "by": "\ud800"}}),
        (None, {"a": {"until": float("inf"), "by": "x"}, "b": {"until": float("nan"), "by": "x"}}),
    ],
)
def test_nothing_in_the_files_can_break_a_page(tmp_path: Path, identities: object, drains: object) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "identities.json").write_text(json.dumps(identities))
    (state / "drains.json").write_text(json.dumps(drains))
    fleet = write_fleet(tmp_path / "fleet.yml", a=GONE)
    with exporter(fleet, tmp_path / "log", "--state-dir", str(state)) as (address, _):
        for path in ("/", "/targets", "/metrics", "/drain", "/probe?target=a"):
            assert requests.get(f"{address}{path}", timeout=30).status_code == 200, path


def test_an_engine_that_only_another_version_knows_is_learned_anew(tmp_path: Path) -> None:
    (tmp_path / "identities.json").write_text(json.dumps(identity(engine="from-the-future")))
    known = Identities(tmp_path).of(REPLICA)
    assert (known.engine, known.model) == ("", "m")


@pytest.mark.parametrize("options", [(), ("--shard", "2/2")])
def test_two_exporters_cannot_share_a_directory(tmp_path: Path, options: tuple[str, ...]) -> None:
    fleet = write_fleet(tmp_path / "fleet.yml", a=GONE)
    state = tmp_path / "state"
    with exporter(fleet, tmp_path / "log", "--state-dir", str(state)):
        second = serve(fleet, "--state-dir", str(state), *options)
    assert (second.returncode, second.stderr) == (
        1,
        f"--state-dir {state}: another exporter uses it; give each exporter a directory of its own\n",
    )
    with exporter(fleet, tmp_path / "log", "--state-dir", str(state)):
        """A directory whose exporter ended is free again."""


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    fleet = write_fleet(tmp_path / "fleet.yml", a=GONE)
    refused = serve(fleet, "--state-dir", str(fleet / "state"))
    assert (refused.returncode, refused.stderr) == (
        1,
        f"--state-dir {fleet / 'state'}: expected a directory of ours: Not a directory\n",
    )


@pytest.mark.parametrize("name", ["identities.json", "drains.json", "identities.new"])
@pytest.mark.parametrize("kind", ["a pipe", "a directory", "a device"])
def test_what_is_no_file_where_one_is_kept_is_named(tmp_path: Path, name: str, kind: str) -> None:
    fleet = write_fleet(tmp_path / "fleet.yml", a=GONE)
    odd = tmp_path / name
    match kind:
        case "a pipe":
            os.mkfifo(odd)
        case "a directory":
            odd.mkdir()
        case _:
            odd.symlink_to("/dev/zero")
    refused = serve(fleet, "--state-dir", str(tmp_path))
    assert (refused.returncode, refused.stderr) == (
        1,
        f"{odd}: expected a file, got a directory, pipe, socket or device; remove it\n",
    )


def test_a_name_that_cannot_be_listened_on_is_said_in_words(tmp_path: Path) -> None:
    fleet = write_fleet(tmp_path / "fleet.yml", a=GONE)
    refused = serve(fleet, "--listen", "no-such-host.invalid:9801")
    assert refused.returncode == 1
    assert "Unknown error" not in refused.stderr
    assert "Name or service not known" in refused.stderr


@pytest.mark.parametrize("timeout", ["0s", "0ms", "61s", f"{'9' * 400}s"])
def test_a_timeout_in_which_nothing_can_be_scraped_is_refused(tmp_path: Path, timeout: str) -> None:
    refused = serve(write_fleet(tmp_path / "fleet.yml", a=GONE), "--timeout", timeout)
    assert refused.returncode == 2
    assert "expected a duration above 0s and up to 60s" in refused.stderr


def serve(fleet: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    listen = () if "--listen" in options else ("--listen", f"127.0.0.1:{free_port()}")
    command = [sys.executable, "-m", "exporter", "serve", "--fleet", str(fleet), *listen, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_what_could_not_be_written_is_written_later_and_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="exporter.storage")
    directory = tmp_path / "volume"  # not mounted yet, or full

    async def scenario() -> list[bool]:
        drains, identities = Drains(directory), Identities(directory)
        _, kept = await drains.mark("a", timedelta(hours=1), "test")
        identities.learn(REPLICA, models=("m",), engine="vllm")
        for _ in range(3):
            identities.keep()
            await drains.expire()
        directory.mkdir()
        identities.keep()
        await drains.expire()
        return [kept, Drains(directory).of("a") is not None, Identities(directory).of(REPLICA).model == "m"]

    assert asyncio.run(scenario()) == [False, True, True]
    said = [(record.levelname, record.message.partition(" ")[2]) for record in caplog.records]
    assert sorted(said) == [
        ("INFO", "can be written again"),
        ("INFO", "can be written again"),
        ("WARNING", "cannot be written (No such file or directory): drain markers will be lost at a restart"),
        ("WARNING", "cannot be written (No such file or directory): learned models will be lost at a restart"),
    ]
