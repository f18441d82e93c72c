"""Service: the fleet in use and a watch for each replica; a reload replaces the fleet or leaves it as it is."""

import asyncio
import logging
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exporter import open_files
from exporter.admin import AdminToken
from exporter.changes import FleetFiles
from exporter.digest import Digest
from exporter.drain import Drains
from exporter.fleet import Fleet, FleetError, Replica, load
from exporter.gpu.collector import Collector
from exporter.identity import Identities
from exporter.scrape import Scraper
from exporter.shard import Shard, shard_of
from exporter.telemetry import Telemetry
from exporter.watch import Outcome, Stages, Watch

__all__ = ["RUNBOOKS", "Options", "Service"]

RUNBOOKS = Path(__file__).resolve().parent.parent / "runbooks"
"""The committed runbooks, whose facts are those of the committed fleet."""
_log = logging.getLogger(__name__)

_OF_RULES = ("slos", "thresholds", "spare_replicas", "models", "oncall", "links")
"""Sections of the fleet's files that rules, boards and Alertmanager are generated from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to serve. `min_interval` and `timeout` in seconds; `timeout` is the budget of a reader that names none.

    `runbooks` are those that generate.py wrote for this fleet. Without `admin_token_file` nothing can be changed over
    HTTP. `shard` is the part of the fleet that is watched here.
    """

    fleet: Path
    state_dir: Path | None = None
    min_interval: float = 1.0
    timeout: float = 10.0
    admin_token_file: Path | None = None
    shard: Shard = field(default_factory=Shard)
    runbooks: Path = RUNBOOKS


class Service:
    """Everything behind the HTTP surface. Made inside a running event loop."""

    def __init__(self, options: Options, fleet: Fleet) -> None:
        self.options = options
        self.telemetry = Telemetry()
        self.refused = ""
        self._files = FleetFiles(options.fleet)
        self._reloading = asyncio.Lock()
        self._scraper = Scraper()
        self._digest = Digest()
        self._identities = Identities(options.state_dir)
        self.drains = Drains(options.state_dir)
        self.admin = AdminToken(options.admin_token_file)
        self.watches: dict[str, Watch] = {}
        self.gpus = Collector(self._scraper, self._model_named, options.min_interval)
        self._use(fleet)

    def abandon(self) -> None:
        """End running scrapes without a result, because the exporter itself ends."""
        for watch in self.watches.values():
            watch.abandon()
        self.gpus.abandon()

    async def close(self) -> None:
        """Close connections to the engines, and the session with the GPU driver."""
        await self._scraper.close()
        self._digest.close()
        await self.keep()
        await self.gpus.close()

    async def reload(self) -> None:
        """Read the fleet's files again; raise FleetError, and keep the fleet in use, where they cannot be used."""
        async with self._reloading:
            await asyncio.to_thread(self._files.take)
            try:
                fleet = await asyncio.to_thread(load, self.options.fleet)
            except FleetError as error:
                self._refuse(str(error))
                raise
            stale = [name for name in _OF_RULES if getattr(fleet, name) != getattr(self.fleet, name)]
            self._use(fleet)
            _log.info("fleet reloaded: %d replicas", len(self.watches))
            if stale:
                _log.warning(
                    "%s changed: rules and notifications go by what was there before until they are generated anew and"
                    " read again",
                    ", ".join(stale),
                )

    async def reload_or_keep(self) -> None:
        """Read the fleet's files again; what is wrong with them is logged and shown, not raised."""
        with suppress(FleetError):
            await self.reload()

    async def fleet_changed(self) -> bool:
        """Tell whether the fleet's files were changed since they were last read, and the change is complete."""
        return await asyncio.to_thread(self._files.have_settled_anew)

    async def keep(self) -> None:
        """Write to disk what has to outlive a restart, and end drains whose time is up."""
        await self.drains.expire()
        if self._identities.is_news:
            await asyncio.to_thread(self._identities.keep)

    async def look(self, watch: Watch, budget: float) -> Outcome:
        """Scrape a replica, or share a scrape, and count it."""
        telemetry = self.telemetry
        telemetry.probes.inc()
        telemetry.in_flight += 1
        try:
            before = watch.last
            outcome = await watch.look(budget)
        finally:
            telemetry.in_flight -= 1
        if outcome is not before:
            telemetry.scrapes.observe(outcome.duration)
        return outcome

    def why_not_here(self, name: str) -> str:
        """Say why no replica of that name is watched here; empty where one is."""
        if name in self.watches:
            return ""
        if name not in self._replicas:
            return f"No replica is named {name[:80]!a} in the fleet file."
        here = self.options.shard
        there = Shard(number=shard_of(name, here.count), count=here.count)
        return f"Replica {name} is watched by the exporter of shard {there}; this one is shard {here}."

    def model_of(self, watch: Watch) -> str:
        """Answer a replica's model, configured or learned, or a router's models; empty where nobody told it."""
        return ", ".join(self._identities.of(watch.replica).models)

    def models(self) -> Iterable[str]:
        """Answer the model of each replica, each of a router's models, empty where nobody told it."""
        for watch in self.watches.values():
            yield from self._identities.of(watch.replica).models or ("",)

    def targets(self, address: str, scheme: str = "http") -> list[dict[str, Any]]:
        """Answer Prometheus' HTTP service discovery: every replica behind /probe of this address."""
        secure = {"__scheme__": scheme} if scheme != "http" else {}
        return [
            {
                "targets": [address],
                "labels": {
                    **watch.replica.labels,
                    **secure,
                    "__metrics_path__": "/probe",
                    "__param_target": name,
                    "replica": name,
                    "instance": watch.replica.address,
                    **self._engine_label(watch),
                },
            }
            for name, watch in self.watches.items()
        ]

    def gpu_targets(self, address: str, scheme: str = "http") -> list[dict[str, Any]]:
        """Answer Prometheus' HTTP service discovery: /gpu of this address, and of every exporter in fleet.yml."""
        others = [url.partition("//") for url in self.fleet.gpus.exporters]
        found = {address: scheme} | {host: scheme.rstrip(":") for scheme, _, host in others}
        return [
            {"targets": [target], "labels": {"__metrics_path__": "/gpu", "__scheme__": scheme}}
            for target, scheme in found.items()
        ]

    def _model_named(self, name: str) -> str:
        return self._identities.of(self._replicas[name]).model

    def _engine_label(self, watch: Watch) -> dict[str, str]:
        engine = self._identities.of(watch.replica).engine
        return {"engine": engine} if engine else {}

    def _is_ours(self, replica: Replica) -> bool:
        return self.options.shard.has(replica.name)

    def _refuse(self, sentence: str) -> None:
        """Show that the fleet's files cannot be used; the log has each reason once, however often they are read."""
        if sentence != self.refused:
            _log.warning("fleet not reloaded: %s", sentence)
        self.refused = sentence
        self.telemetry.reload_success.set(0)

    def _use(self, fleet: Fleet) -> None:
        """Take a fleet into use; replicas that did not change keep their counters, running scrapes finish."""
        self.fleet = fleet
        self._replicas = {replica.name: replica for replica in fleet.replicas}
        self.gpus.use(fleet)
        self._identities.keep_only(frozenset(replica.name for replica in fleet.replicas))
        self._digest.use(fleet.slos, len(fleet.replicas))
        stages = Stages(
            scraper=self._scraper,
            digest=self._digest,
            identities=self._identities,
            drains=self.drains,
        )
        before = self.watches
        self.watches = {}
        for replica in filter(self._is_ours, fleet.replicas):
            watch = before.get(replica.name)
            if watch is None or watch.replica != replica:
                watch = Watch(replica=replica, stages=stages, min_interval=self.options.min_interval)
            watch.stages = stages
            self.watches[replica.name] = watch
        if scarce := open_files.too_few(len(self.watches)):
            _log.warning("%s", scarce)
        self.refused = ""
        self.telemetry.reload_success.set(1)
        self.telemetry.reload_time.set(time.time())
