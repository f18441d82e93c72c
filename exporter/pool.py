"""Pool: connections to engines, kept for the next scrape. In: a place and the bytes of a request. Out: a `Response`.

    UnreachableError       no connection came about; `cause` says why
    UnknownNameError       the host's name has no address
    ExchangeError          there is a connection, and no response that can be used

There is no limit to how many are open: each replica has its own, and none waits for another's.
"""

import asyncio
import ssl
from dataclasses import dataclass
from http import HTTPStatus

from aiohappyeyeballs import start_connection

from exporter.connection import ClosedError, Connection, Response
from exporter.names import Names

__all__ = ["Place", "Pool", "UnreachableError"]

_IDLE_SECONDS = 15.0
_NEXT_ADDRESS_SECONDS = 0.25
"""How long an address may take before the next one of the host is tried beside it (RFC 8305)."""


class UnreachableError(Exception):
    """No connection came about; `in_handshake` if somebody was reached, and TLS not agreed on."""

    def __init__(self, cause: OSError | RuntimeError, *, in_handshake: bool = False) -> None:
        super().__init__()
        self.cause = cause
        self.in_handshake = in_handshake


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where to connect to; `trust` is for https, None means plain http."""

    host: str
    port: int
    trust: ssl.SSLContext | None = None


class Pool:
    """Asks over connections that are kept, or new ones."""

    def __init__(self, names: Names) -> None:
        """Open nothing yet."""
        self._names = names
        self._idle: dict[Place, list[Connection]] = {}
        self._sweep: asyncio.TimerHandle | None = None

    async def ask(self, place: Place, request: bytes, limit: int) -> Response:
        """Answer the response; the connection is kept if the engine agrees, and has not asked for its end itself.

        A connection that went stale while it was idle is replaced by a new one, once: a request may be sent twice.
        """
        kept = self._take(place)
        if kept is not None:
            try:
                response = await self._use(kept, place, request, limit)
                if response.status != HTTPStatus.REQUEST_TIMEOUT:  # it may have been sent before we asked
                    return response
            except ClosedError as error:
                if not error.is_unanswered:
                    raise
        return await self._use(await self._connect(place), place, request, limit)

    def close(self) -> None:
        """Close what is idle."""
        if self._sweep is not None:
            self._sweep.cancel()
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        self._idle.clear()

    def _take(self, place: Place) -> Connection | None:
        idle = self._idle.get(place)
        while idle:
            connection = idle.pop()
            if connection.is_usable:
                return connection
        return None

    async def _use(self, connection: Connection, place: Place, request: bytes, limit: int) -> Response:
        response = await connection.ask(request, limit)
        if connection.is_usable:
            loop = asyncio.get_running_loop()
            connection.idle_since = loop.time()
            self._idle.setdefault(place, []).append(connection)
            if self._sweep is None:
                self._sweep = loop.call_later(_IDLE_SECONDS, self._close_idle)
        return response

    async def _connect(self, place: Place) -> Connection:
        addresses = await self._names.addresses(place.host, place.port)
        try:
            socket = await start_connection(addresses, happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS)
        except (OSError, RuntimeError) as error:  # uvloop has some of both
            raise UnreachableError(error) from None
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                Connection, sock=socket, ssl=place.trust, server_hostname=_certified(place)
            )
        except BaseException as error:
            socket.close()
            if isinstance(error, OSError | RuntimeError):
                raise UnreachableError(error, in_handshake=place.trust is not None) from None
            raise
        return connection

    def _close_idle(self) -> None:
        """Close what was idle for long; look again as long as there is anything left."""
        loop = asyncio.get_running_loop()
        oldest = loop.time() - _IDLE_SECONDS
        for place, connections in tuple(self._idle.items()):
            for connection in connections:
                if connection.idle_since <= oldest:
                    connection.close()
            self._idle[place] = [one for one in connections if one.is_usable]
            if not self._idle[place]:
                del self._idle[place]
        self._sweep = loop.call_later(_IDLE_SECONDS, self._close_idle) if self._idle else None


def _certified(place: Place) -> str | None:
    """Answer the name that the certificate has to be for: without the dot of a full name, or an address' zone."""
    return place.host.partition("%")[0].rstrip(".") if place.trust is not None else None
