"""One replica: a port, a process that lives and dies on it, and the faults it has been given."""

import asyncio
import time
from collections.abc import Coroutine
from enum import Enum
from typing import TYPE_CHECKING

from simulator import llama_server_replica, vllm_replica
from simulator.config import EngineKind, Model, ReplicaSpec
from simulator.engine import Disturbance, Engine
from simulator.engine_loop import EngineLoop, Page
from simulator.faults import Fault, FaultError, parse_fault
from simulator.llama_server_dialect import LlamaServerDialect
from simulator.llama_server_page import LlamaServerPage
from simulator.port import Port
from simulator.serving import Surface, families
from simulator.vllm_dialect import VllmDialect
from simulator.vllm_page import VllmPage

if TYPE_CHECKING:
    from simulator.dialect import Dialect

# A new process is rid of these; what comes from the load, the hardware or the version is still there after a restart.
_END_WITH_THE_PROCESS = ("kill", "hang", "hang_metrics", "stale_gauges")


class State(Enum):
    """Where a replica stands in its life."""

    DEAD = "dead"
    LOADING = "loading"
    READY = "ready"


class Replica:
    """Starts, breaks, heals and restarts one simulated engine."""

    def __init__(self, spec: ReplicaSpec, host: str) -> None:
        self.spec = spec
        self.port = Port(host, spec.port)
        self.state = State.DEAD
        self.faults: dict[str, Fault] = {}
        self._expiries: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._life: list[asyncio.Task[None]] = []
        self._surface: Surface | None = None
        self._changing = asyncio.Lock()
        self._lives = 0

    @property
    def model(self) -> Model:
        """The model this replica serves."""
        return self.spec.model

    def remaining(self, fault: str) -> float | None:
        """Seconds until a fault heals by itself; None when it stays."""
        expiry = self._expiries.get(fault)
        return None if expiry is None else max(0.0, expiry.when() - asyncio.get_running_loop().time())

    async def start(self, *, loading: float | None = None) -> None:
        """Start the process: it loads its model (`loading` seconds, or the model's own time), then serves."""
        async with self._changing:
            await self._begin(self.model.loading if loading is None else loading)

    async def stop(self) -> None:
        """End the process and give the port back."""
        async with self._changing:
            for expiry in self._expiries.values():
                expiry.cancel()
            await self._die()
            self.port.close()

    async def restart(self) -> None:
        """End the process and start it again: counters fall to zero, the model is loaded anew."""
        async with self._changing:
            await self._die()
            for fault in _END_WITH_THE_PROCESS:
                self._forget(fault)
            await self._begin(self.model.loading)

    async def give(self, name: str, values: dict[str, object], *, seconds: float | None = None) -> None:
        """Give a fault, for ever or for a number of seconds; FaultError when it cannot be."""
        fault = parse_fault(name, values, self.model)
        async with self._changing:
            self._check_rename(fault)
            self._forget(name)
            self.faults[name] = fault
            if name in ("kill", "loading"):
                await self._die()
            if name == "loading":
                await self._begin(fault.number("seconds"))
            self._apply()
            if seconds is not None:
                loop = asyncio.get_running_loop()
                self._expiries[name] = loop.call_later(seconds, self._expire, name)

    async def heal(self, name: str) -> None:
        """Take a fault away; FaultError when it is not there."""
        async with self._changing:
            if name not in self.faults:
                present = ", ".join(self.faults) or "none"
                raise FaultError(f"{self.spec.name} does not have the fault {name!r}; it has {present}")
            self._forget(name)
            if name == "kill":
                for fault in _END_WITH_THE_PROCESS:
                    self._forget(fault)
                await self._begin(self.model.loading)
            elif name == "loading":
                await self._die()
                await self._begin(0)
            self._apply()

    def _forget(self, name: str) -> None:
        self.faults.pop(name, None)
        expiry = self._expiries.pop(name, None)
        if expiry is not None:
            expiry.cancel()

    def _expire(self, name: str) -> None:
        task = asyncio.ensure_future(self._heal_if_there(name))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _heal_if_there(self, name: str) -> None:
        if name in self.faults:
            await self.heal(name)

    async def _begin(self, loading: float) -> None:
        model = self.model
        self._lives += 1
        seed = self.spec.seed * 1000 + self._lives
        engine = Engine(speed=model.speed, limits=model.limits, seed=seed)
        page: Page
        dialect: Dialect
        if model.engine is EngineKind.VLLM:
            page, dialect = VllmPage(model, started_at=time.time()), VllmDialect()
        else:
            page, dialect = LlamaServerPage(model, started_at=time.time()), LlamaServerDialect()
        loop = EngineLoop(engine, page)
        self._surface = Surface(model, loop, dialect, seed=seed)
        self.state = State.LOADING
        self._apply()
        if model.engine is EngineKind.LLAMA_SERVER:
            self._surface.switches.loading = True
            await self._open(self._surface)  # answers 503 to everything until the model is there
        if loading == 0:
            await self._become_ready(self._surface)
        else:
            self._live(self._load(self._surface, loading))

    async def _load(self, surface: Surface, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._become_ready(surface)

    async def _become_ready(self, surface: Surface) -> None:
        if self.model.engine is EngineKind.VLLM:
            await self._open(surface)  # vLLM listens only when it can serve
        surface.switches.loading = False
        self.state = State.READY
        self._forget("loading")
        self._live(surface.loop.run())

    def _live(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work, name=self.spec.name)
        task.add_done_callback(_report_crash)
        self._life.append(task)

    async def _open(self, surface: Surface) -> None:
        own = vllm_replica if self.model.engine is EngineKind.VLLM else llama_server_replica
        await self.port.open(surface.application(own.endpoints(surface)))

    async def _die(self) -> None:
        life, self._life = self._life, []
        for task in life:
            task.cancel()
        await asyncio.gather(*life, return_exceptions=True)
        await self.port.reset()
        self.state = State.DEAD

    def _apply(self) -> None:
        """Set everything that faults change, from the faults that are there: healing is then not a second path."""
        surface = self._surface
        if surface is None:
            return
        engine, loop, switches = surface.loop.engine, surface.loop, surface.switches
        here = self.faults
        engine.disturbance = Disturbance(
            slow_prefill=here["slow_prefill"].number("factor") if "slow_prefill" in here else 1.0,
            slow_decode=here["slow_decode"].number("factor") if "slow_decode" in here else 1.0,
            reject_all="full_queue" in here,
            error_share=here["errors"].number("share") if "errors" in here else 0.0,
        )
        blocks = int(here["full_kv"].number("blocks")) if "full_kv" in here else engine.limits.blocks
        engine.kv.withheld = engine.limits.blocks - blocks
        loop.stale_when_idle = "stale_gauges" in here
        if "hang" in here:
            loop.hang()
        else:
            loop.go_on()
        if "hang_metrics" in here:
            switches.answers_metrics.clear()
        else:
            switches.answers_metrics.set()
        rename = here.get("rename_metric")
        switches.renamed = (rename.text("from"), rename.text("to")) if rename else None

    def _check_rename(self, fault: Fault) -> None:
        if fault.name != "rename_metric" or self._surface is None:
            return
        body, _ = self._surface.loop.page.render("", self._surface.loop.gauges())
        known = families(body.decode())
        if fault.text("from") not in known:
            raise FaultError(
                f"rename_metric: no family {fault.text('from')!r} on the page; there are {', '.join(known)}"
            )


def _report_crash(task: asyncio.Task[None]) -> None:
    """Say so at once when a replica breaks by a mistake of the simulator: it would look like a hang."""
    if not task.cancelled() and (error := task.exception()) is not None:
        report = {"message": f"replica {task.get_name()} crashed", "exception": error, "task": task}
        task.get_loop().call_exception_handler(report)
