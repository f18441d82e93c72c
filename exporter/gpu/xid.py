"""Xid: errors that the driver reports, counted as they come. In: cards, the event set, the kernel's log. Out: new ones.

A thread waits for events, so that two equal errors between two scrapes are two. Some numbers never become an event; the
kernel's log has them all, but needs a permission. Each error is in both where both can be read, so the larger count
holds.
"""

import os
import re
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from ctypes import c_void_p, cast
from pathlib import Path
from typing import Any

import pynvml

from exporter.gpu.reading import Xid

__all__ = ["KernelLog", "Xids"]

_WAIT_MILLISECONDS = 100
_PAUSE = 5.0  # seconds; a lost card makes every wait fail at once
_LINE = re.compile(rb"NVRM: Xid \(PCI:([0-9a-fA-F:]+)\): (\d+)")

Error = tuple[str, int]


class Xids:
    """Counts errors of the cards it watches."""

    def __init__(self, log: Path = Path("/dev/kmsg")) -> None:
        self._events: Counter[Error] = Counter()
        self._told: Counter[Error] = Counter()
        self._names: dict[int, str] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._log = KernelLog(log)

    def watch(self, handles: Mapping[str, Any], addresses: Mapping[str, str]) -> None:
        """Watch these cards: handle by uuid, uuid by PCI address without function."""
        self._log.read(addresses)
        names = {_address(handle): gpu for gpu, handle in handles.items()}
        if names and names != self._names:
            self._names = names
            self._restart(list(handles.values()))

    def take(self) -> tuple[Xid, ...]:
        """Answer the errors since the last call."""
        with self._lock:
            events = self._events.copy()
        counts = events | self._log.counts  # the larger of both
        new = counts - self._told
        self._told = counts
        now = time.time()
        return tuple(Xid(gpu=gpu, xid=xid, count=count, at=now) for (gpu, xid), count in sorted(new.items()))

    def close(self) -> None:
        """Let the thread end; it does not outlive its current wait."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=5 * _WAIT_MILLISECONDS / 1000)
        self._log.close()

    def _restart(self, handles: list[Any]) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, args=(handles, self._stop), name="xid", daemon=True)
        self._thread.start()

    def _listen(self, handles: list[Any], stop: threading.Event) -> None:
        while not stop.is_set():
            with suppress(pynvml.NVMLError):
                self._listen_once(handles, stop)
            stop.wait(_PAUSE)

    def _listen_once(self, handles: list[Any], stop: threading.Event) -> None:
        """Count events until waiting fails; cards that offer none are left out."""
        events = pynvml.nvmlEventSetCreate()
        try:
            registered = sum(_register(handle, events) for handle in handles)
            while registered and not stop.is_set():
                try:
                    event = pynvml.nvmlEventSetWait(events, _WAIT_MILLISECONDS)
                except pynvml.NVMLError_Timeout:
                    continue
                gpu = self._names.get(_address(event.device))
                if gpu is not None and event.eventType == pynvml.nvmlEventTypeXidCriticalError:
                    with self._lock:
                        self._events[gpu, int(event.eventData)] += 1
        finally:
            pynvml.nvmlEventSetFree(events)


class KernelLog:
    """Xid lines of the kernel's log since it was opened; where it may not be read there are none."""

    def __init__(self, path: Path) -> None:
        self.counts: Counter[Error] = Counter()
        self._file: int | None = None
        with suppress(OSError):
            self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self._file, 0, os.SEEK_END)

    def read(self, addresses: Mapping[str, str]) -> None:
        """Count what was written since the last call. A record that was overwritten before we came is lost."""
        if self._file is None:
            return
        while True:
            try:
                record = os.read(self._file, 8192)
            except BrokenPipeError:
                continue
            except OSError:
                return
            if not record:
                return
            for address, xid in _LINE.findall(record):
                gpu = addresses.get(address.decode().lower())
                if gpu is not None:
                    self.counts[gpu, int(xid)] += 1

    def close(self) -> None:
        """Close the log."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _register(handle: Any, events: Any) -> bool:  # noqa: ANN401 - pointers of ctypes
    try:
        pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, events)
    except pynvml.NVMLError:
        return False
    return True


def _address(handle: Any) -> int:  # noqa: ANN401 - a pointer of ctypes
    return cast(handle, c_void_p).value or 0
