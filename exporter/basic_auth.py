"""Basic auth: an ASGI application that lets known users through to another. In: requests, users. Out: 401, or theirs.

A password costs a bcrypt hash once (0.1 s, in a thread); after that a keyed digest of it is remembered, so a scrape
costs microseconds. Who is unknown costs as much as who is known, so time does not tell names.
"""

import asyncio
import base64
import binascii
import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Mapping

import bcrypt
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from exporter.web import Web

__all__ = ["BasicAuth", "Passwords"]

_OPEN = frozenset({"/-/healthy", "/-/ready"})
"""What tells nothing is open, so that a supervisor needs no password."""
_REMEMBERED = 128


class BasicAuth:
    """Guards an application with the users of a web configuration; the admin token opens the door too."""

    def __init__(self, app: ASGIApp, web: Web) -> None:
        self._app = app
        self._web = web
        self._passwords = Passwords()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or answer 401."""
        if scope["type"] == "http" and not await self._may_pass(scope):
            refusal = PlainTextResponse(
                "A name and its password are needed, as in the web configuration file.\n",
                status_code=401,
                headers={"WWW-Authenticate": 'Basic realm="Servewatch", charset="UTF-8"'},
            )
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _may_pass(self, scope: Scope) -> bool:
        users = self._web.config.users
        if not users or scope["path"] in _OPEN:
            return True
        header = Headers(scope=scope).get("authorization")
        given = _credentials(header)
        if given is not None:
            return await self._passwords.are_right(users, *given)
        return bool(scope["app"].state.service.admin.is_in(header))


class Passwords:
    """Checks passwords; remembers digests of right ones with a key of this process, never a password."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._right: OrderedDict[bytes, None] = OrderedDict()
        self._one_at_a_time = asyncio.Semaphore(1)

    async def are_right(self, users: Mapping[str, bytes], name: str, password: bytes) -> bool:
        """Tell whether this is the name and password of a user."""
        hashed = users.get(name) or next(iter(users.values()))
        digest = self._digest(name.encode(), password, hashed)
        if digest not in self._right:
            async with self._one_at_a_time:  # guessing takes one core at most, and those who are known do not wait
                is_right = await asyncio.to_thread(_matches, password, hashed)
            if not (is_right and name in users):
                return False
            self._right[digest] = None
            if len(self._right) > _REMEMBERED:
                self._right.popitem(last=False)
        return True

    def _digest(self, *parts: bytes) -> bytes:
        whole = hashlib.blake2b(key=self._key)
        for part in parts:
            whole.update(len(part).to_bytes(8, "big") + part)
        return whole.digest()


def _matches(password: bytes, hashed: bytes) -> bool:
    try:
        return bcrypt.checkpw(password, hashed)
    except ValueError:  # longer than bcrypt reads, or with a NUL
        return False


def _credentials(header: str | None) -> tuple[str, bytes] | None:
    scheme, _, encoded = (header or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
        return (name.decode(), password) if colon else None
    except (binascii.Error, ValueError):
        return None
