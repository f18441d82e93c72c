"""The fake NVML: NVIDIA's driver library for machines without a card, for tests, drills and benchmarks.

In: what each card says, and its faults. Out: a shared library under the real one's name, and the script that it reads.
"""

import atexit
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["GIBIBYTE", "HEALTHY", "FakeNvml", "library", "uuid"]

_SOURCE = Path(__file__).with_name("fake_nvml.c")
GIBIBYTE = 2**30

HEALTHY: Mapping[str, object] = {
    "name": "NVIDIA H100 80GB HBM3",
    "utilization": 93,
    "memory_utilization": 41,
    "memory_total": 80 * GIBIBYTE,
    "memory_used": 60 * GIBIBYTE,
    "memory_free": 19 * GIBIBYTE,
    "temperature": 61,
    "power": 512_250,
    "power_limit": 700_000,
    "energy": 7_001_500,
    "sm_clock": 1980,
    "throttle": 0,
    "ecc_corrected": 7,
    "ecc_uncorrected": 0,
    "rows_corrected": 1,
    "rows_uncorrected": 0,
    "rows_pending": 0,
    "rows_failed": 0,
    "pcie_replays": 13,
    "field38": 1,
    "field45": 0,
    "field52": 2,
    "field59": 0,
}


@functools.cache
def library(*, old: bool = False) -> Path:
    """Compile the library, as it is or as drivers before 510 had it; answer the folder that holds it.

    There it has the real one's name.
    """
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise FileNotFoundError("the fake of NVIDIA's library has to be compiled: install gcc")
    folder = Path(tempfile.mkdtemp(prefix="fake-nvml-"))
    target = folder / "libnvidia-ml.so.1"
    options = ["-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", *(["-DOLD"] if old else [])]
    subprocess.run([compiler, *options, "-o", str(target), str(_SOURCE), "-lpthread"], check=True)  # noqa: S603 - ours
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def uuid(index: int) -> str:
    """Answer the uuid of a healthy script's card."""
    return f"GPU-{index:08d}-0000-4000-8000-000000000000"


@dataclass(slots=True, kw_only=True)
class FakeNvml:
    """A script of the fake; `say` changes it while the library is in use."""

    file: Path
    keys: dict[str, object] = field(default_factory=dict)

    @classmethod
    def healthy(cls, folder: Path, cards: int = 2) -> "FakeNvml":
        """Write a script of cards that are well."""
        fake = cls(file=folder / "nvml.script")
        fake.say({"driver": "570.172.08", "count": cards})
        for index in range(cards):
            fake.card(index, **HEALTHY, uuid=uuid(index), pci=f"00000000:{0x3B + index:02X}:00.0")
        return fake

    def card(self, index: int, **values: object) -> None:
        """Change what one card says; None is "not supported"."""
        self.say({f"gpu{index}.{key}": value for key, value in values.items()})

    def say(self, keys: Mapping[str, object]) -> None:
        """Change keys of the script; the library in use reads it anew. None takes a key away."""
        self.keys |= keys
        text = "".join(f"{key}={value}\n" for key, value in self.keys.items() if value is not None)
        whole = self.file.with_suffix(".new")
        whole.write_text(text)
        whole.replace(self.file)

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs so that its NVML is this one."""
        return {"LD_LIBRARY_PATH": str(library()), "FAKE_NVML": str(self.file)}
