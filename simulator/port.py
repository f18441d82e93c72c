"""A replica's port: refused while it is down, answering while it is up, and reset when the process dies."""

import asyncio
import contextlib
import socket
import struct

from aiohttp import web


class PortTakenError(Exception):
    """Somebody else listens on the port; the message names it."""


class Port:
    """Holds a port for one replica over restarts: bound all the time, listening only while it serves."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        try:
            self._claim = _bound(host, port)
        except OSError as error:
            raise PortTakenError(f"{host}:{port}: {error.strerror}; end what uses it or choose another port") from error
        self.number = int(self._claim.getsockname()[1])
        self._runner: web.AppRunner | None = None

    async def open(self, app: web.Application) -> None:
        """Listen, and serve the application."""
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        self._runner = runner
        try:
            await web.SockSite(runner, _bound(self.host, self.number)).start()
        except OSError as error:
            await self.reset()
            where = f"{self.host}:{self.number}"
            raise PortTakenError(f"{where}: {error.strerror}; end what uses it or choose another port") from error

    async def reset(self) -> None:
        """Stop listening and reset every connection, as the kernel does for a process that was killed."""
        runner, self._runner = self._runner, None
        if runner is None:
            return
        for site in tuple(runner.sites):
            await site.stop()
        for connection in tuple(runner.server.connections if runner.server else ()):
            transport = connection.transport
            if transport is not None:
                _reset(transport)
        await runner.cleanup()

    def close(self) -> None:
        """Give the port back."""
        self._claim.close()


def _bound(host: str, port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


def _reset(transport: asyncio.Transport) -> None:
    connection = transport.get_extra_info("socket")
    if connection is not None:
        with contextlib.suppress(OSError):  # the client may have gone in this very moment
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
