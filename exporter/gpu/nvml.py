"""NVML: NVIDIA's driver library -> readings, in the catalogue's units. Runs in the worker's process, never in ours.

Milliwatts, millijoules, megahertz and percent become watts, joules, hertz and ratios. What a card does not support is
absent. Divided cards (MIG) tell memory per instance; physical sensors stay with the card, and nobody tells how busy an
instance is.
"""

import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pynvml

from exporter import catalogue
from exporter.gpu.field import Field
from exporter.gpu.processes import Processes
from exporter.gpu.reading import Card, Failure, Hold, Reading, Snapshot, SourceError, Values
from exporter.gpu.throttle import throttle_fields, throttled
from exporter.gpu.xid import Xids
from exporter.tame import tamed

__all__ = ["FIELDS", "Session"]

Handle = Any  # a pointer of ctypes
Question = Callable[[Handle, Values], None]

_OF_DRIVER = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: (
        Failure.NO_LIBRARY,
        "libnvidia-ml.so.1 is not on this host: no NVIDIA driver here, or the container does not get it",
    ),
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: (
        Failure.NO_DRIVER,
        "the NVIDIA driver is not loaded: try `modprobe nvidia`, then read `dmesg`",
    ),
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
        Failure.DRIVER_MISMATCH,
        "driver and library have different versions, as after an upgrade: reboot, or load the new driver",
    ),
    pynvml.NVML_ERROR_UNINITIALIZED: (Failure.UNKNOWN, "the driver has ended the session"),
}
_OF_CARD = {
    pynvml.NVML_ERROR_GPU_IS_LOST: (Failure.LOST, "the card has fallen off the bus"),
    pynvml.NVML_ERROR_GPU_NOT_FOUND: (Failure.LOST, "the driver does not find the card any more"),
    pynvml.NVML_ERROR_RESET_REQUIRED: (Failure.RESET_REQUIRED, "the card needs a reset"),
    pynvml.NVML_ERROR_INSUFFICIENT_POWER: (Failure.NO_POWER, "a power cable is not connected"),
    pynvml.NVML_ERROR_NO_PERMISSION: (Failure.NO_PERMISSION, "this user may not ask the card"),
    pynvml.NVML_ERROR_IRQ_ISSUE: (Failure.UNKNOWN, "the kernel has trouble with the card's interrupts"),
    pynvml.NVML_ERROR_TIMEOUT: (Failure.TIMEOUT, "the card did not answer the driver in time"),
    pynvml.NVML_ERROR_OPERATING_SYSTEM: (Failure.UNKNOWN, "the operating system denied a call"),
    pynvml.NVML_ERROR_CORRUPTED_INFOROM: (Failure.UNKNOWN, "the card's configuration memory is corrupt"),
    pynvml.NVML_ERROR_UNKNOWN: (Failure.UNKNOWN, "the driver answered: unknown error"),
}
_GONE = frozenset({Failure.LOST, Failure.RESET_REQUIRED, Failure.NO_POWER})
_MOST_MEMORY = 2**50
_LINK_KINDS = ("CRC_FLIT", "CRC_DATA", "REPLAY", "RECOVERY")
_LINK_ERRORS = tuple(getattr(pynvml, f"NVML_FI_DEV_NVLINK_{kind}_ERROR_COUNT_TOTAL") for kind in _LINK_KINDS)


@dataclass(slots=True, kw_only=True)
class _Device:
    """A card that answered once: its handle outlives trouble, so that the card can still be named."""

    handle: Handle
    card: Card
    facts: dict[str, str]


class Session:
    """The library, initialised; raises SourceError where that fails."""

    def __init__(self) -> None:
        try:
            pynvml.nvmlInit()
            self._driver = _words(pynvml.nvmlSystemGetDriverVersion)
        except pynvml.NVMLError as error:
            raise _source_error(error) from None
        self._hostname = socket.gethostname()
        self._devices: dict[int, _Device] = {}
        self._processes = Processes()
        self._xids = Xids()

    def close(self) -> None:
        """End the session with the driver."""
        self._xids.close()
        with suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()

    def read(self) -> Snapshot:
        """Ask every card; raises SourceError if the driver itself does not answer."""
        try:
            count = pynvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as error:
            raise _source_error(error) from None
        if not count and not self._devices:
            raise SourceError(Failure.NO_GPU, "the driver is loaded and finds no card")
        readings: list[Reading] = []
        dropped = 0
        for index in range(max(count, *(known + 1 for known in self._devices), 0)):
            for reading, values in self._read_one(index):
                readings.append(reading)
                dropped += values.dropped
        self._xids.watch({device.card.gpu: device.handle for device in self._devices.values()}, _addresses(readings))
        return Snapshot(readings=tuple(readings), xids=self._xids.take(), dropped=dropped)

    def _read_one(self, index: int) -> Iterator[tuple[Reading, Values]]:
        device = self._devices.get(index)
        try:
            if device is None:
                device = self._devices[index] = self._found(index)
        except pynvml.NVMLError as error:
            if error.value in _OF_DRIVER:
                raise _source_error(error) from None
            failure, sentence = _card_trouble(error)
            card = Card(gpu=f"index:{index}")
            yield (
                Reading(card=card, failures=frozenset({failure}), up=False, sentence=f"card {index}: {sentence}"),
                Values(),
            )
            return
        divided = _is_divided(device.handle)
        if divided:
            yield self._measured(device.handle, device.card, device.facts, _SENSORS)
            yield from self._parts(device)
        else:
            yield self._measured(device.handle, device.card, device.facts, _ALL, self._holds)

    def _found(self, index: int) -> _Device:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        facts = {
            catalogue.CARD.name: _text(lambda: pynvml.nvmlDeviceGetName(handle)),
            catalogue.DRIVER.name: self._driver,
            catalogue.PCI.name: _pci(handle),
            catalogue.HOSTNAME.name: self._hostname,
        }
        gpu = _words(lambda: pynvml.nvmlDeviceGetUUID(handle)) or f"index:{index}"
        return _Device(handle=handle, card=Card(gpu=gpu), facts=facts)

    def _parts(self, device: _Device) -> Iterator[tuple[Reading, Values]]:
        """Read the instances of a divided card; compute instances of one GPU instance share its memory."""
        seen = set()
        for index in range(_or(0, lambda: pynvml.nvmlDeviceGetMaxMigDeviceCount(device.handle))):
            try:
                handle = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(device.handle, index)
                partition = str(pynvml.nvmlDeviceGetGpuInstanceId(handle))
            except pynvml.NVMLError:
                continue
            if partition not in seen:
                seen.add(partition)
                card = Card(gpu=device.card.gpu, partition=partition)
                facts = device.facts | {catalogue.CARD.name: _text(lambda: pynvml.nvmlDeviceGetName(handle))}  # noqa: B023 - called at once
                yield self._measured(handle, card, facts, (_memory,), self._holds)

    def _measured(
        self,
        handle: Handle,
        card: Card,
        facts: dict[str, str],
        questions: tuple[Question, ...],
        holds: Callable[[Handle], Iterable[Hold]] = lambda _: (),
    ) -> tuple[Reading, Values]:
        """Put questions to a card or a part of one; the processes of a divided card are those of its parts."""
        values = Values()
        failures: dict[Failure, str] = {}
        for question in questions:
            try:
                question(handle, values)
            except pynvml.NVMLError as error:
                if error.value in _OF_DRIVER:
                    raise _source_error(error) from None
                if error.value in _OF_CARD and error.value != pynvml.NVML_ERROR_NO_PERMISSION:
                    failure, sentence = _card_trouble(error)
                    failures[failure] = sentence
            except Exception as error:  # noqa: BLE001 - an answer that nobody foresaw must not cost the other cards
                failures[Failure.UNKNOWN] = f"an answer of the driver cannot be read ({type(error).__name__})"
        up = _GONE.isdisjoint(failures) and (bool(values.kept) or not failures)
        reading = Reading(
            card=card,
            facts=facts,
            values=tuple(values.kept) if up else (),
            failures=frozenset(failures),
            up=up,
            sentence=f"{card.gpu}: {'; '.join(failures.values())}" if failures else "",
            alias=_text(lambda: pynvml.nvmlDeviceGetUUID(handle)) if card.partition else "",
            holds=tuple(holds(handle)) if up else (),
        )
        return reading, values

    def _holds(self, handle: Handle) -> Iterator[Hold]:
        for process in _or([], lambda: _running(handle)):
            if ports := self._processes.ports(process.pid):
                memory = process.usedGpuMemory
                yield Hold(ports=ports, memory=memory if memory is not None and memory <= _MOST_MEMORY else None)


def _utilization(handle: Handle, values: Values) -> None:
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    values.take(catalogue.GPU_UTILIZATION, rates.gpu / 100)
    values.take(catalogue.GPU_MEMORY_BANDWIDTH, rates.memory / 100)


def _memory(handle: Handle, values: Values) -> None:
    """Take memory; a total of 0 is a card without memory of its own, about which used and free say nothing either."""
    try:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except (pynvml.NVMLError_FunctionNotFound, pynvml.NVMLError_ArgumentVersionMismatch):
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)  # drivers before 510; reserved memory counts as used there
    if memory.total:
        values.take(catalogue.GPU_MEMORY_TOTAL, memory.total)
        values.take(catalogue.GPU_MEMORY_USED, memory.used)
        values.take(catalogue.GPU_MEMORY_FREE, memory.free)


def _temperature(handle: Handle, values: Values) -> None:
    values.take(catalogue.GPU_TEMPERATURE, pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))


def _power(handle: Handle, values: Values) -> None:
    values.take(catalogue.GPU_POWER, pynvml.nvmlDeviceGetPowerUsage(handle) / 1000)


def _power_limit(handle: Handle, values: Values) -> None:
    values.take(catalogue.GPU_POWER_LIMIT, pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000)


def _energy(handle: Handle, values: Values) -> None:
    values.take(catalogue.GPU_ENERGY, pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000)


def _clock(handle: Handle, values: Values) -> None:
    values.take(catalogue.GPU_SM_CLOCK, pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM) * 1e6)


def _throttle(handle: Handle, values: Values) -> None:
    try:
        mask = pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
    except pynvml.NVMLError_FunctionNotFound:
        mask = pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)  # drivers before 535
    throttled(mask, values)


def _ecc(handle: Handle, values: Values) -> None:
    for detail, kind in (
        ("corrected", pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED),
        ("uncorrected", pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
    ):
        count = pynvml.nvmlDeviceGetTotalEccErrors(handle, kind, pynvml.NVML_VOLATILE_ECC)
        values.take(catalogue.GPU_ECC_ERRORS, count, detail)


def _rows(handle: Handle, values: Values) -> None:
    counts = pynvml.nvmlDeviceGetRemappedRows(handle)
    for detail, count in zip(catalogue.ROW_KIND.values, counts, strict=True):
        values.take(catalogue.GPU_REMAPPED_ROWS, count, detail)


def _replays(handle: Handle, values: Values) -> None:
    values.take(catalogue.GPU_PCIE_REPLAYS, pynvml.nvmlDeviceGetPcieReplayCounter(handle))


def _links(handle: Handle, values: Values) -> None:
    """Add up all links and kinds of errors; one call for all, since each call goes to the driver."""
    fields = pynvml.nvmlDeviceGetFieldValues(handle, list(_LINK_ERRORS))
    counts = [field.value.ullVal for field in fields if field.nvmlReturn == pynvml.NVML_SUCCESS]
    values.take(catalogue.GPU_NVLINK_ERRORS, sum(counts) if counts else None)


_SENSORS: tuple[Question, ...] = (
    *(_temperature, _power, _power_limit, _energy, _clock, _throttle, _ecc, _rows, _replays, _links),
)
_ALL: tuple[Question, ...] = (_utilization, _memory, *_SENSORS)

_ECC_ERRORS = "nvmlDeviceGetTotalEccErrors(NVML_MEMORY_ERROR_TYPE_{}, NVML_VOLATILE_ECC)"
_LINKS = " + ".join(f"NVML_FI_DEV_NVLINK_{kind}_ERROR_COUNT_TOTAL" for kind in _LINK_KINDS)
_XID_NAMES = ("max(nvmlEventSetWait, /dev/kmsg)",)
FIELDS: tuple[Field, ...] = (
    *(
        Field(metric=catalogue.GPU_INFO, names=names, detail=label.name)
        for label, names in (
            (catalogue.CARD, ("nvmlDeviceGetName",)),
            (catalogue.DRIVER, ("nvmlSystemGetDriverVersion",)),
            (catalogue.PCI, ("nvmlDeviceGetPciInfo",)),
            (catalogue.HOSTNAME, ("gethostname",)),
        )
    ),
    *(
        Field(metric=metric, names=(name,))
        for metric, name in (
            (catalogue.REPLICA_GPU_MEMORY, "nvmlDeviceGetComputeRunningProcesses"),
            (catalogue.GPU_UTILIZATION, "nvmlDeviceGetUtilizationRates.gpu"),
            (catalogue.GPU_MEMORY_BANDWIDTH, "nvmlDeviceGetUtilizationRates.memory"),
            (catalogue.GPU_MEMORY_USED, "nvmlDeviceGetMemoryInfo.used"),
            (catalogue.GPU_MEMORY_FREE, "nvmlDeviceGetMemoryInfo.free"),
            (catalogue.GPU_MEMORY_TOTAL, "nvmlDeviceGetMemoryInfo.total"),
            (catalogue.GPU_TEMPERATURE, "nvmlDeviceGetTemperature(NVML_TEMPERATURE_GPU)"),
            (catalogue.GPU_POWER, "nvmlDeviceGetPowerUsage"),
            (catalogue.GPU_POWER_LIMIT, "nvmlDeviceGetEnforcedPowerLimit"),
            (catalogue.GPU_ENERGY, "nvmlDeviceGetTotalEnergyConsumption"),
            (catalogue.GPU_SM_CLOCK, "nvmlDeviceGetClockInfo(NVML_CLOCK_SM)"),
            (catalogue.GPU_PCIE_REPLAYS, "nvmlDeviceGetPcieReplayCounter"),
            (catalogue.GPU_NVLINK_ERRORS, f"nvmlDeviceGetFieldValues({_LINKS})"),
        )
    ),
    *throttle_fields(("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")),
    *(
        Field(metric=catalogue.GPU_ECC_ERRORS, names=(_ECC_ERRORS.format(kind.upper()),), detail=kind)
        for kind in catalogue.ECC_KIND.values
    ),
    *(
        Field(metric=catalogue.GPU_REMAPPED_ROWS, names=("nvmlDeviceGetRemappedRows",), detail=kind)
        for kind in catalogue.ROW_KIND.values
    ),
    *(Field(metric=metric, names=_XID_NAMES) for metric in (catalogue.GPU_XID_ERRORS, catalogue.GPU_XID_TIME)),
)
"""Where each metric comes from; a name in parentheses is what is asked for, one behind a dot a part of the answer."""


def _running(handle: Handle) -> Any:  # noqa: ANN401 - whatever the library answers
    try:
        return pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)
    except pynvml.NVMLError_FunctionNotFound:
        return pynvml.nvmlDeviceGetComputeRunningProcesses_v2(handle)  # drivers before 510


def _is_divided(handle: Handle) -> bool:
    return bool(_or((0, 0), lambda: pynvml.nvmlDeviceGetMigMode(handle))[0])


def _pci(handle: Handle) -> str:
    """Write the address as the kernel does: 0000:3b:00.0, where NVML has 00000000:3B:00.0."""
    address = _text(lambda: pynvml.nvmlDeviceGetPciInfo(handle).busId).lower()
    domain, colon, rest = address.partition(":")
    return f"{domain[-4:]}{colon}{rest}"


def _addresses(readings: list[Reading]) -> dict[str, str]:
    """Answer uuid by PCI address without function, as the kernel's log names cards."""
    return {
        reading.facts[catalogue.PCI.name].rpartition(".")[0]: reading.card.gpu
        for reading in readings
        if reading.facts.get(catalogue.PCI.name)
    }


def _or(default: Any, ask: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the library answers
    try:
        return ask()
    except pynvml.NVMLError:
        return default


def _text(ask: Callable[[], Any]) -> str:
    return str(_or("", lambda: _words(ask)))


def _words(ask: Callable[[], Any]) -> str:
    """Answer what the library says as text that can be printed, whatever bytes it is made of."""
    try:
        answer = ask()
    except UnicodeDecodeError as error:
        answer = error.object
    return tamed(answer.decode("utf-8", "replace") if isinstance(answer, bytes) else str(answer))


def _source_error(error: pynvml.NVMLError) -> SourceError:
    failure, sentence = _OF_DRIVER.get(error.value) or _card_trouble(error)
    return SourceError(failure, sentence)


def _card_trouble(error: pynvml.NVMLError) -> tuple[Failure, str]:
    return _OF_CARD.get(error.value, (Failure.UNKNOWN, f"the driver answered: {str(error).lower()}"))
