"""Debian's Prometheus and Alertmanager, unpacked into .tools/debian instead of installed.

Installed, the packages would start a system service each, and those would hold the ports that ours need.
Debian's Prometheus reads its own web pages from /usr/share/prometheus alone: unpacked, it has its API but no pages.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from running import tools
from running.errors import BuildFailedError
from running.paths import TOOLS, UNPACKED

PACKAGES = ("prometheus", "prometheus-alertmanager")
PROGRAMS = ("prometheus", "promtool", "alertmanager", "amtool")


def is_at_hand() -> bool:
    """Tell whether this machine can fetch and unpack Debian packages."""
    return all(shutil.which(program) for program in ("apt-get", "dpkg-deb"))


def ensure() -> None:
    """Unpack the packages where a program of theirs is missing; where that cannot be done its users will say so."""
    if is_at_hand() and not all(map(tools.all_versions, PROGRAMS)):
        unpack()


def unpack(packages: tuple[str, ...] = PACKAGES) -> None:
    """Fetch the packages and unpack them; raises BuildFailedError with what apt said.

    Only root can bring the package lists up to date, and that is done only if the packages are not in them as they are.
    """
    TOOLS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=TOOLS, prefix="debian-") as scratch:
        print(f"fetching Debian's {' and '.join(packages)} into .tools/debian; nothing is installed")
        print(
            "Prometheus will have its API but no pages of its own: those come with the installed package `prometheus`"
        )
        fetched = _download(packages, Path(scratch))
        if fetched.returncode and os.geteuid() == 0:
            subprocess.run(["apt-get", "-qq", "update"], check=False)
            fetched = _download(packages, Path(scratch))
        if fetched.returncode:
            raise BuildFailedError(f"apt-get download {' '.join(packages)} failed: {fetched.stdout.strip()}")
        for package in Path(scratch).glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", package, UNPACKED], check=True)


def _download(packages: tuple[str, ...], directory: Path) -> subprocess.CompletedProcess[str]:
    # apt would hand the download to the user _apt, who may not write here, and warn about it.
    command = ["apt-get", "-qq", "-o", "APT::Sandbox::User=", "download", *packages]
    return subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=directory,
        check=False,
    )
