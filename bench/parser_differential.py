"""Compares our parser with a real Prometheus: `python -m bench.parser_differential --pages 100000 --seed 1`.

In: one or more Prometheus binaries (all on this machine unless told). Out: for each, how many pages both accept, both
refuse, differ on purpose, differ without a reason (with the smallest such page), and pages per second. Exit status 1
if there is a difference without a reason.
"""

import argparse
import asyncio
import signal
import sys
import time
from pathlib import Path

from bench.differential.compare import Comparison
from bench.differential.session import Finding, Size, run
from running.tools import Tool, all_versions, missing, version_of

_BAR = 40


def main(arguments: list[str] | None = None) -> int:
    """Compare, print, and answer the exit status."""
    options = _parser().parse_args(arguments)
    tools = [_tool(path) for path in options.prometheus or ()] or all_versions("prometheus")
    if not tools:
        sys.exit(missing("prometheus"))
    return max([_compare(tool, options) for tool in tools])


def _tool(path: Path) -> Tool:
    version = version_of(path, "prometheus")
    if version is None:
        sys.exit(f"--prometheus: expected the path of a Prometheus binary, got {path}, which does not say its version")
    return Tool(name="prometheus", path=path, version=version)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.parser_differential", description="Compare our exposition parser with a real Prometheus."
    )
    parser.add_argument("--pages", type=int, default=100_000, help="invented pages (default: %(default)s)")
    parser.add_argument(
        "--seed", type=int, default=1, help="the same seed invents the same pages (default: %(default)s)"
    )
    parser.add_argument(
        "--prometheus", type=Path, action="append", metavar="PATH", help="a binary (default: every version found)"
    )
    parser.add_argument(
        "--targets", type=int, default=600, help="targets, each scraped once a second (default: %(default)s)"
    )
    return parser


def _compare(tool: Tool, options: argparse.Namespace) -> int:
    started = time.monotonic()

    rate = ""

    def show(total: Comparison) -> None:
        nonlocal rate
        pages = total.counts.total()
        rate = f"{pages / (time.monotonic() - started):.0f} pages/s"
        done = min(_BAR, _BAR * pages // options.pages) if options.pages else _BAR
        line = f"\r[{'#' * done:<{_BAR}}] {pages} pages, {rate}, {len(total.differences)} differences"
        print(line, end="", file=sys.stderr, flush=True)

    print(f"{tool} ({tool.path}), seed {options.seed}", flush=True)
    size = Size(pages=options.pages, targets=options.targets)
    total, findings = asyncio.run(run(tool, seed=options.seed, size=size, progress=show))
    print(file=sys.stderr)
    print(report(total, findings, rate))
    return 1 if total.differences else 0


def report(total: Comparison, findings: list[Finding], rate: str) -> str:
    """Write what a person reads at the end."""
    lines = [f"  {total.counts.total():>8}  pages, {rate}"]
    lines += [f"  {count:>8}  {what}" for what, count in sorted(total.counts.items()) if what != "differences"]
    lines += [f"  {total.counts['differences']:>8}  differences without a reason"]
    for finding in findings:
        page = finding.difference.page
        kind = "OpenMetrics" if page.openmetrics else "text"
        lines += [f"\n  smallest page ({kind}): {page.body!r}", f"    ours:       {finding.difference.ours}"]
        lines += [f"    Prometheus: {finding.difference.theirs} {finding.error}"]
    return "\n".join(lines)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that Prometheus is stopped, too
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
