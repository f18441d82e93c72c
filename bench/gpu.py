"""What /gpu costs: time and processor time of a read of eight cards, on the fake driver or the real one (`--real`).

In: nothing. Out: a table. The worker's process and the exporter's share are measured together, as a scrape pays both.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from exporter.fleet import Fleet, Replica
from exporter.gpu.collector import Collector
from exporter.scrape import Scraper
from simulator.fake_nvml import FakeNvml

_CARDS = 8
_WARM_UP = 20
_READS = 500
_INTERVAL = 5.0  # seconds between two scrapes
_MOST_MILLISECONDS = 15.0
_MOST_OF_A_CORE = 0.01
_TICKS = os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Measure, print, and answer 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description=__doc__)
    parser.add_argument("--real", action="store_true", help="ask the driver of this host instead of the fake one")
    if not parser.parse_args().real:
        os.environ |= FakeNvml.healthy(Path(tempfile.mkdtemp(prefix="bench-gpu-")), _CARDS).environment
    walls, processor, page = asyncio.run(_measure())
    cards = page.count("\nllm_gpu_up{")
    median, worst = statistics.median(walls) * 1000, sorted(walls)[int(0.99 * len(walls))] * 1000
    share = processor / len(walls) / _INTERVAL
    print(f"cards                          {cards}")
    print(f"reads                          {len(walls)}")
    print(f"median of a read               {median:.2f} ms (limit {_MOST_MILLISECONDS:g} ms)")
    print(f"99th percentile                {worst:.2f} ms")
    print(f"processor time of a read       {processor / len(walls) * 1000:.2f} ms")
    print(f"share of a core, every {_INTERVAL:g} s     {share:.3%} (limit {_MOST_OF_A_CORE:.0%})")
    return int(not cards or median > _MOST_MILLISECONDS or share > _MOST_OF_A_CORE)


async def _measure() -> tuple[list[float], float, str]:
    """Answer the time of each read, the processor time of all, in seconds, and the last page."""
    scraper = Scraper()
    collector = Collector(scraper, lambda _: "model", min_interval=0.0)
    collector.use(Fleet(replicas=(Replica(name="a", url="http://127.0.0.1:8000"),)))
    try:
        for _ in range(_WARM_UP):
            page = await collector.page(10)
        before, walls = _processor_seconds(), []
        for _ in range(_READS):
            start = time.perf_counter()
            page = await collector.page(10)
            walls.append(time.perf_counter() - start)
        return walls, _processor_seconds() - before, page
    finally:
        await collector.close()
        await scraper.close()


def _processor_seconds() -> float:
    """Answer what this process and its running children have used."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    ticks = 0
    for pid in children:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / _TICKS


if __name__ == "__main__":
    sys.exit(main())
