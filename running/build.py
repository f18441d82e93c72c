"""`make tools`: builds Prometheus and Alertmanager with Go; out, their four programs in .tools/bin.

The Go module zips lack the built web pages (they need Node), so each server gets one small page that says so.
The source is copied out of the module cache because Go refuses to overlay files there.
"""

import gzip
import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from running.errors import BuildFailedError
from running.paths import BUILT, TOOLS
from running.tools import version_of

_PROGRESS_SECONDS = 10
_PAGE = """<!doctype html><meta charset="utf-8"><title>{name} {release}</title>
<p>This {name} was built without its web pages. Its API and everything else works; see {instead}.</p>
"""
_EMBED = """//go:build builtinassets

package ui

import "embed"

//go:embed static/mantine-ui/index.html
var EmbedFS embed.FS
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A Go module, the version we build, and what its zip lacks."""

    name: str
    module: str
    module_version: str
    release: str
    programs: tuple[str, ...]
    instead: str
    pages: tuple[str, ...]
    tags: tuple[str, ...] = ()
    extra: dict[str, str] = field(default_factory=dict)

    def is_built(self) -> bool:
        """Tell whether every program is there at this release."""
        return all(version_of(BUILT / program, program) == self.release for program in self.programs)


SOURCES = (
    Source(
        name="Alertmanager",
        module="github.com/prometheus/alertmanager",
        module_version="v0.35.0",
        release="0.35.0",
        programs=("alertmanager", "amtool"),
        instead="`amtool alert`, `amtool silence`",
        pages=("ui/app/dist/elm/index.html.gz", "ui/app/dist/mantine/index.html.gz"),
    ),
    Source(
        name="Prometheus",
        module="github.com/prometheus/prometheus",
        module_version="v0.316.0",  # Prometheus 3.16: a Go module cannot be called v3 without /v3 in its path
        release="3.16.0",
        programs=("prometheus", "promtool"),
        instead="the boards, or `promtool query instant`",
        pages=("web/ui/static/mantine-ui/index.html",),
        # Clouds' service discoveries are half of the build; static, file and http discovery always remain.
        tags=("remove_all_sd", "builtinassets", "netgo"),
        extra={"web/ui/embed.go": _EMBED},
    ),
)


def build_missing(sources: tuple[Source, ...] = SOURCES) -> None:
    """Build what is not yet in .tools/bin at our versions; raises BuildFailedError."""
    for source in sources:
        if source.is_built():
            print(f"{source.name} {source.release} is built: {', '.join(source.programs)} in .tools/bin")
        else:
            _build(source)


def _build(source: Source) -> None:
    started = time.monotonic()
    if not shutil.which("go"):
        raise BuildFailedError(
            f"go is not on PATH, so {source.name} {source.release} cannot be built: install Go (https://go.dev/dl), "
            f"or use Debian's older packages: `make up` fetches them by itself"
        )
    TOOLS.mkdir(exist_ok=True)
    BUILT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=TOOLS, prefix="build-") as scratch:
        tree, out = Path(scratch) / "source", Path(scratch) / "out"
        print(f"{source.name} {source.release}: fetching the source, then building: minutes the first time")
        _copy(_download(source), tree)
        _add_pages(source, tree)
        _compile(source, tree, out)
        for program in source.programs:
            (out / program).replace(BUILT / program)
    print(f"{source.name} {source.release}: {', '.join(source.programs)} built in {time.monotonic() - started:.0f} s")


def _download(source: Source) -> Path:
    command = ["go", "mod", "download", "-json", f"{source.module}@{source.module_version}"]
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=_environment(), cwd=TOOLS, check=False)
    if answer.returncode:
        reason = json.loads(answer.stdout or "{}").get("Error", "see above")
        raise BuildFailedError(f"{' '.join(command)} failed: {reason}")
    return Path(json.loads(answer.stdout)["Dir"])


def _copy(module: Path, tree: Path) -> None:
    """Copy a module without the cache's read-only marks, which would keep us from adding pages and from cleaning up."""
    shutil.copytree(module, tree, copy_function=shutil.copyfile)
    for directory, _, _ in os.walk(tree):
        Path(directory).chmod(0o755)


def _add_pages(source: Source, tree: Path) -> None:
    page = _PAGE.format(name=source.name, release=source.release, instead=source.instead)
    files = dict.fromkeys(source.pages, page) | source.extra
    for path, text in files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(gzip.compress(text.encode()) if path.endswith(".gz") else text.encode())


def _compile(source: Source, tree: Path, out: Path) -> None:
    packages = [f"./cmd/{program}" for program in source.programs]
    tags = f"-tags={','.join(source.tags)}"
    count = ["go", "list", "-deps", tags, *packages]
    listed = subprocess.run(count, stdout=subprocess.PIPE, text=True, env=_environment(), cwd=tree, check=False)
    stamp = f"-s -w -X github.com/prometheus/common/version.Version={source.release}"
    command = ["go", "build", "-v", "-trimpath", tags, f"-ldflags={stamp}", f"-o={out}/", *packages]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=_environment(), cwd=tree) as build:
        log = _follow(source, build, len(listed.stdout.splitlines()))
    if build.returncode:
        raise BuildFailedError(f"{' '.join(command)} failed in {source.module}:\n" + "\n".join(log[-20:]))


def _follow(source: Source, build: subprocess.Popen[str], packages: int) -> list[str]:
    """Read `go build -v`, one line per compiled package, and say every few seconds how far it is; answers the lines."""
    lines: list[str] = []
    started = said = time.monotonic()
    for line in build.stderr or ():
        lines.append(line.rstrip())
        if time.monotonic() - said > _PROGRESS_SECONDS:
            said = time.monotonic()
            print(
                f"{source.name} {source.release}: {len(lines)} of at most {packages} packages, {said - started:.0f} s"
            )
    return lines


def _environment() -> dict[str, str]:
    # The scratch tree lies inside our repository: its commit must not be stamped in, nor a workspace be picked up.
    flags = f"{os.environ.get('GOFLAGS', '')} -buildvcs=false".strip()
    return {**os.environ, "GOFLAGS": flags, "GOWORK": "off", "CGO_ENABLED": "0"}
