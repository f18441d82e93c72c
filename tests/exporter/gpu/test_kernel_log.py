"""Xids in the kernel's log."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from exporter.gpu.xid import KernelLog

ADDRESSES = {"0000:3b:00": "GPU-a", "0000:86:00": "GPU-b"}
LINE = "4,1234,5678,-;NVRM: Xid (PCI:{}): {}, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kmsg"
    path.write_text(LINE.format("0000:3b:00", 13))
    return path


@pytest.fixture
def log(file: Path) -> Iterator[KernelLog]:
    opened = KernelLog(file)
    yield opened
    opened.close()


def test_lines_are_counted_by_card_and_number(file: Path, log: KernelLog) -> None:
    with file.open("a") as kernel:
        kernel.write("6,1,2,-;usb 1-1: new device\n")
        kernel.writelines(LINE.format(address, 79) for address in ("0000:3b:00", "0000:3B:00", "0000:86:00"))
        kernel.write(LINE.format("0000:99:00", 79))
    log.read(ADDRESSES)
    assert dict(log.counts) == {("GPU-a", 79): 2, ("GPU-b", 79): 1}, "neither old lines nor strangers' cards"


def test_a_line_counts_once(file: Path, log: KernelLog) -> None:
    with file.open("a") as kernel:
        kernel.write(LINE.format("0000:3b:00", 31))
    log.read(ADDRESSES)
    log.read(ADDRESSES)
    assert log.counts["GPU-a", 31] == 1


def test_a_log_that_may_not_be_read_is_an_empty_one(tmp_path: Path) -> None:
    log = KernelLog(tmp_path / "none")
    log.read(ADDRESSES)
    assert not log.counts
