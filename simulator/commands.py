"""What the command line does: parsed options in, an exit code out."""

import asyncio
import contextlib
import json
import signal
from pathlib import Path
from urllib.parse import quote

import requests
from aiohttp import ClientError, ClientSession

from simulator.config import Fleet, load_fleet
from simulator.faults import KINDS
from simulator.fleet import FleetServer
from simulator.load import LoadGenerator, open_session
from simulator.phone.app import Phone
from simulator.phone.store import Store
from simulator.port import Port

_TIMEOUT = 30.0  # seconds for the control API to answer


class CommandError(Exception):
    """A command that could not do its work; the message says why."""


async def fleet(config: Path, host: str, port: int, *, cold: bool) -> int:
    """Run the fleet until somebody asks it to stop."""
    stopped = stop_event()
    configured = load_fleet(config)
    with contextlib.closing(Port(host, port)) as control:
        server = FleetServer(configured, host)
        try:
            await control.open(server.application())
            await server.start(loading=None if cold else 0)
            print(f"control API on http://{host}:{control.number}", flush=True)
            for line in server.lines():
                print(line, flush=True)
            await stopped.wait()
        finally:
            await server.stop()
            await control.reset()
    return 0


async def load(config: Path, *, host: str, control: str | None, factor: float, every: float) -> int:
    """Send traffic until somebody asks to stop."""
    stopped = stop_event()
    configured = load_fleet(config)
    async with open_session() as session:
        addresses = await _ask_addresses(session, control, stopped) if control else _addresses(configured, host)
        generators = {
            traffic.model: LoadGenerator(
                traffic, addresses.get(traffic.model, {}), session, seed=configured.traffic_seed, factor=factor
            )
            for traffic in configured.traffic
        }
        tasks = [asyncio.create_task(generator.run()) for generator in generators.values()]
        tasks.append(asyncio.create_task(_summaries(generators, every)))
        stopping = asyncio.create_task(stopped.wait())
        await asyncio.wait((*tasks, stopping), return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return 0


async def _summaries(generators: dict[str, LoadGenerator], every: float) -> None:
    while True:
        await asyncio.sleep(every)
        line = "; ".join(f"{model}: {generator.take_tally()}" for model, generator in generators.items())
        print(line, flush=True)


def _addresses(fleet_config: Fleet, host: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for replica in fleet_config.replicas:
        found.setdefault(replica.model.name, {})[replica.name] = f"http://{host}:{replica.port}"
    return found


async def _ask_addresses(session: ClientSession, control: str, stopped: asyncio.Event) -> dict[str, dict[str, str]]:
    while not stopped.is_set():
        try:
            async with session.get(control) as answer:
                document = await answer.json()
        except ClientError:
            print(f"load: waiting for the control API on {control}", flush=True)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), 1.0)
            continue
        found: dict[str, dict[str, str]] = {}
        for replica in document["replicas"]:
            found.setdefault(replica["model"], {})[replica["name"]] = replica["url"]
        return found
    return {}


async def phone(host: str, port: int, *, store: Path | None) -> int:
    """Run the phone until somebody asks it to stop."""
    stopped = stop_event()
    try:
        kept = Store(store)
    except OSError as error:
        raise CommandError(f"{store}: cannot be used: {error.strerror}; give another file with --store") from error
    with contextlib.closing(Port(host, port)) as listening:
        await listening.open(Phone(kept).application())
        print(f"phone on http://{host}:{listening.number}", flush=True)
        await stopped.wait()
        await listening.reset()
    return 0


def break_replica(control: str, replica: str, fault: str, parameters: list[str], seconds: str | None) -> int:
    """Give a fault through the control API."""
    values: dict[str, str] = {}
    for parameter in parameters:
        key, equals, value = parameter.partition("=")
        if not equals:
            raise CommandError(f"expected KEY=VALUE, got {parameter!r}")
        values[key] = value
    query = f"?for={quote(seconds)}" if seconds else ""
    return _call("PUT", f"{control}/replicas/{quote(replica, safe='')}/faults/{quote(fault, safe='')}{query}", values)


def heal_replica(control: str, replica: str, fault: str | None) -> int:
    """Take one fault, or all, through the control API."""
    one = f"/{quote(fault, safe='')}" if fault else ""
    return _call("DELETE", f"{control}/replicas/{quote(replica, safe='')}/faults{one}", None)


def fault_list() -> str:
    """Write the faults with their parameters, for a help text."""
    return ", ".join(" ".join((kind.name, *map(str, kind.parameters))) for kind in KINDS.values())


def stop_event() -> asyncio.Event:
    """Make an event that SIGTERM and SIGINT set."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    return stopped


def _call(method: str, url: str, values: dict[str, str] | None) -> int:
    try:
        answer = requests.request(method, url, json=values, timeout=_TIMEOUT)
    except requests.RequestException as error:
        raise CommandError(f"{url}: no answer ({type(error).__name__}); is the fleet running?") from error
    try:
        document = answer.json()
    except ValueError as error:
        raise CommandError(f"{url}: not the simulator's control API (HTTP {answer.status_code})") from error
    if not answer.ok:
        raise CommandError(str(document.get("error", document)))
    print(json.dumps(document))
    return 0
