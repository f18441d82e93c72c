"""Pages of a replica that works: in, a captured page; out, a row of pages whose counters grow as a busy engine's do.

A page that never changes would flatter whoever keeps what it has seen; a scrape in production meets new numbers.
"""

import re
from pathlib import Path

__all__ = ["CAPTURED", "growing"]

CAPTURED = Path(__file__).parents[2] / "tests" / "fixtures" / "captures" / "vllm-0.32.0" / "under-load.prom"
_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)((?:\{.*\})?) (\S+)$")
_COUNTS = ("_total", "_bucket", "_count")
_SECONDS_PER_STEP = 0.137


def growing(page: str, steps: int) -> list[bytes]:
    """Answer so many pages; every count is one higher than on the page before, sums grow by a part of a second."""
    lines = page.splitlines()
    return ["\n".join([*(_later(line, step) for line in lines), ""]).encode() for step in range(steps)]


def _later(line: str, step: int) -> str:
    sample = _SAMPLE.match(line)
    if sample is None:
        return line
    name, labels, value = sample.groups()
    if name.endswith(_COUNTS):
        return f"{name}{labels} {float(value) + step}"
    if name.endswith("_sum"):
        return f"{name}{labels} {float(value) + step * _SECONDS_PER_STEP}"
    return line
