"""Stand-in images for machines that cannot pull: in, the pinned names; out, local images under these names.

Each has what compose.yaml relies on in the official image: user, paths, entry point, and the tool of the health check.
"""

import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path

from running import tools
from running.errors import BuildFailedError, ToolMissingError
from running.paths import ROOT, TOOLS

_CACHE = TOOLS / "stand-ins"
_NOBODY = 65534
_APPLETS = ("sh", "wget", "id", "touch", "true")
_DEBIAN_TEMPLATES = Path("/usr/share/prometheus/alertmanager")  # Debian's build has them outside the binary
_LIBRARY = re.compile(r"(/\S+) \(0x")  # ldd: "libc.so.6 => /lib/…/libc.so.6 (0x…)" or "/lib64/ld-linux… (0x…)"
_NEEDLESS = ("var/cache/apt", "var/lib/apt", "usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale")
_PIP_CONF = "[global]\nno-index = true\nfind-links = /wheels\n"


def make(variables: Mapping[str, str]) -> None:
    """Make a stand-in for each pinned image except Grafana's."""
    for repository, maker in (
        ("prom/prometheus", _prometheus),
        ("prom/alertmanager", _alertmanager),
        ("python", _python),
    ):
        maker(pinned(repository), variables)


def pinned(repository: str) -> str:
    """Answer the image of a repository with the version that compose.yaml or the Dockerfile pins."""
    text = (ROOT / "compose.yaml").read_text() + (ROOT / "Dockerfile").read_text()
    [image] = set(re.findall(rf"(?:image:|FROM) ({repository}:\S+)", text))
    return str(image)


def _prometheus(image: str, variables: Mapping[str, str]) -> None:
    _minimal(image, variables, binary=_newest("prometheus"), path="/bin/prometheus", data="/prometheus")


def _alertmanager(image: str, variables: Mapping[str, str]) -> None:
    _minimal(image, variables, binary=_newest("alertmanager"), path="/bin/alertmanager", data="/alertmanager")


def _newest(name: str) -> Path:
    versions = tools.all_versions(name)
    if not versions:
        raise ToolMissingError(tools.missing(name))
    return max(versions, key=lambda tool: tool.release).path


def _minimal(image: str, variables: Mapping[str, str], *, binary: Path, path: str, data: str) -> None:
    content = io.BytesIO()
    templates = {file: str(file) for file in _DEBIAN_TEMPLATES.glob("*.tmpl")}
    files = {**_with_libraries(binary, path), **_with_libraries(_busybox(), "/bin/busybox"), **templates}
    with tarfile.open(fileobj=content, mode="w") as archive:
        for file, name in files.items():
            archive.add(file.resolve(), name)
        for applet in _APPLETS:
            link = tarfile.TarInfo(f"/bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
        accounts = f"nobody:x:{_NOBODY}:{_NOBODY}:nobody:/:/bin/sh\n".encode()
        _add_bytes(archive, "/etc/passwd", accounts)
        directory = tarfile.TarInfo(data)
        directory.type, directory.mode, directory.uid, directory.gid = tarfile.DIRTYPE, 0o755, _NOBODY, _NOBODY
        archive.addfile(directory)
    changes = ("USER nobody", f'ENTRYPOINT ["{path}"]', f"WORKDIR {data}", f'VOLUME ["{data}"]', "ENV PATH=/bin")
    _import(image, content.getvalue(), variables, changes)


def _python(image: str, variables: Mapping[str, str]) -> None:
    base = f"{image}-base"
    _import(base, _debian().read_bytes(), variables)
    with tempfile.TemporaryDirectory() as directory:
        context = Path(directory)
        shutil.copytree(_wheels(), context / "wheels")
        (context / "pip.conf").write_text(_PIP_CONF)
        (context / "Dockerfile").write_text(f"FROM {base}\nCOPY wheels /wheels\nCOPY pip.conf /etc/pip.conf\n")
        _run(["docker", "build", "--tag", image, directory], variables)


def _debian() -> Path:
    """Make Debian with Python and pip, once; the file is kept because it takes a minute."""
    cached = _CACHE / "debian-python.tar"
    if cached.exists():
        return cached
    if shutil.which("debootstrap") is None:
        raise ToolMissingError("debootstrap is not on PATH: install Debian's package debootstrap")
    _CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "root"
        packages = "python3,python3-venv,python3-pip"
        _run(["debootstrap", "--variant=minbase", f"--include={packages}", "bookworm", root], {})
        partial = cached.with_suffix(".partial")
        excludes = [f"--exclude=./{path}" for path in _NEEDLESS]
        _run(["tar", f"--directory={root}", *excludes, f"--file={partial}", "--create", "."], {})
        return partial.rename(cached)


def _wheels() -> Path:
    """Download the pinned dependencies for the Python of Debian bookworm, once per set of pins."""
    pins = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    cached = _CACHE / f"wheels-{hashlib.sha256(repr(pins).encode()).hexdigest()[:12]}"
    if not cached.exists():
        with tempfile.TemporaryDirectory(dir=_made(_CACHE)) as directory:
            download = [sys.executable, "-m", "pip", "download", "--python-version=3.11", "--only-binary=:all:"]
            _run([*download, f"--dest={directory}", *pins], {})
            shutil.copytree(directory, cached)
    return cached


def _with_libraries(binary: Path, name: str) -> dict[Path, str]:
    answer = subprocess.run(["ldd", binary], capture_output=True, text=True, check=False).stdout
    return {binary: name, **{Path(library): library for library in _LIBRARY.findall(answer)}}


def _busybox() -> Path:
    found = shutil.which("busybox")
    if found is None:
        raise ToolMissingError("busybox is not on PATH: install Debian's package busybox-static")
    return Path(found)


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def _import(image: str, content: bytes, variables: Mapping[str, str], changes: tuple[str, ...] = ()) -> None:
    options = [f"--change={change}" for change in changes]
    _run(["docker", "import", *options, "-", image], variables, content)


def _made(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _run(command: list[str | Path], variables: Mapping[str, str], content: bytes | None = None) -> None:
    done = subprocess.run(command, env={**os.environ, **variables}, input=content, capture_output=True, check=False)
    if done.returncode:
        output = (done.stdout + done.stderr).decode(errors="replace")[-2000:]
        raise BuildFailedError(f"`{' '.join(map(str, command))[:200]}` ended with {done.returncode}:\n{output}")
