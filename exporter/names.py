"""Names: a host and a port -> addresses to connect to; UnknownNameError where a name has none.

Looked up without threads, so that names that hang take nothing from the others. An answer is used for ten seconds, and
who asks meanwhile shares the look-up.
"""

import asyncio
import socket
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiodns
from aiohappyeyeballs import AddrInfoType

if TYPE_CHECKING:
    from pycares import AddrInfoNode

__all__ = ["Names", "UnknownNameError"]

_SECONDS = 10.0


class UnknownNameError(Exception):
    """A name has no address that anybody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _LookUp:
    """A look-up, and until when its answer is used."""

    until: float
    task: "asyncio.Task[list[AddrInfoNode]]"


class Names:
    """Looks names up, and remembers them for a while."""

    def __init__(self, resolver: Callable[[], aiodns.DNSResolver] = aiodns.DNSResolver) -> None:
        """Ask nobody yet; a fleet of addresses needs no resolver, which would be a thread."""
        self._make_resolver = resolver
        self._resolver: aiodns.DNSResolver | None = None
        self._known: OrderedDict[str, _LookUp] = OrderedDict()

    async def addresses(self, host: str, port: int) -> list[AddrInfoType]:
        """Answer where a host may be reached, in the order to try; raise UnknownNameError."""
        with suppress(socket.gaierror, UnicodeError):  # the latter of names that no resolver takes
            return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST))
        try:
            nodes = await asyncio.shield(self._look_up(host).task)
        except aiodns.error.DNSError:
            nodes = []
        if not nodes:
            raise UnknownNameError(host)
        return [_address(node, port) for node in nodes]

    async def close(self) -> None:
        """End all look-ups."""
        for look_up in self._known.values():
            look_up.task.cancel()
        if self._resolver is not None:
            await self._resolver.close()

    def _look_up(self, host: str) -> _LookUp:
        now = asyncio.get_running_loop().time()
        for name, oldest in tuple(self._known.items()):
            if oldest.until > now or not oldest.task.done():
                break
            del self._known[name]
        found = self._known.get(host)
        if found is None:
            found = self._known[host] = _LookUp(until=now + _SECONDS, task=asyncio.create_task(self._ask(host)))
            found.task.add_done_callback(lambda task: self._forget_failure(host, task))
        return found

    async def _ask(self, host: str) -> "list[AddrInfoNode]":
        if self._resolver is None:
            self._resolver = self._make_resolver()
        found = await self._resolver.getaddrinfo(host, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        return found.nodes

    def _forget_failure(self, host: str, task: "asyncio.Task[list[AddrInfoNode]]") -> None:
        """Have a name that could not be looked up asked for anew, though nobody may wait for it any more."""
        if task.cancelled() or task.exception() is not None:
            self._known.pop(host, None)


def _address(node: "AddrInfoNode", port: int) -> AddrInfoType:
    ip, _, *flow_and_scope = node.addr
    text = ip.decode() if isinstance(ip, bytes) else ip
    return node.family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (text, port, *flow_and_scope)
