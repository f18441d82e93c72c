"""Serve: the process around the server. In: options, a fleet. Out: a listening socket, and an end within two seconds.

SIGTERM and SIGINT end it with exit code 0: running scrapes are abandoned, and their readers told so.
"""

import asyncio
import gc
import logging
import signal
import socket
import sys

import uvicorn
from fastapi import FastAPI
from prometheus_client import disable_created_metrics

from exporter import open_files, storage
from exporter.fleet import Fleet
from exporter.front import Front, is_news
from exporter.server import app
from exporter.service import Options
from exporter.web import Web

__all__ = ["run"]

_KEEP_ALIVE_SECONDS = 75  # longer than anybody's scrape interval, so that Prometheus need not connect anew each time
_SWITCH_SECONDS = 0.0005  # how long a thread may keep the event loop waiting, each time
_GARBAGE = 20_000
"""Objects that are made before Python looks for ones that hold each other; a probe makes hundreds, and none that do."""
_log = logging.getLogger(__name__)


class _Server(uvicorn.Server):
    """uvicorn, but an end does not wait for scrapes."""

    def __init__(self, application: FastAPI, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._application = application

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Abandon scrapes, so that every reader is answered at once, then close."""
        self._application.state.service.abandon()
        await asyncio.sleep(0)
        await super().shutdown(sockets)


def run(options: Options, fleet: Fleet, host: str, port: int, web: Web | None = None) -> None:
    """Serve until a signal ends it.

    Raise OSError if the address cannot be listened on, StorageError if the state directory is not ours alone.
    """
    disable_created_metrics()  # type: ignore[no-untyped-call] # a third of the series of /metrics, told as start time
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # uvicorn acts on it, then gives it back to us: nothing is left to do
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.set_threshold(_GARBAGE)
    open_files.raise_limit()
    logging.getLogger("uvicorn.error").addFilter(is_news)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=2048) as listening:
        if options.state_dir is not None:
            storage.claim(options.state_dir)  # until the process ends
        application = app(options, fleet, web)
        front = web.front() if web is not None else None
        config = uvicorn.Config(
            application,
            access_log=False,
            log_config=None,
            log_level=logging.WARNING,
            timeout_graceful_shutdown=1,
            http=Front,
            loop="uvloop",  # a probe costs half of what it costs with asyncio's own; try it with bench/probe.py
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            server_header=False,
            date_header=False,
            proxy_headers=False,  # who changes something is the peer, not what a header claims
            ssl_context_factory=(lambda *_: front) if front is not None else None,
        )
        scheme = "http" if front is None else "https"
        watched = sum(options.shard.has(replica.name) for replica in fleet.replicas)
        _log.info(
            "watching %d of %d replicas, listening on %s://%s:%d", watched, len(fleet.replicas), scheme, host, port
        )
        _Server(application, config).run([listening])
