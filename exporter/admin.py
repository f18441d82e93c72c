"""Admin: who may change what the exporter says. In: an Authorization header. Out: leave, or a refusal with a sentence.

RefusedError           the request may not change anything; str() is the sentence, `status` the HTTP status
"""

import hmac
from pathlib import Path

from exporter.secret import SecretError, SecretFile

__all__ = ["AdminToken", "RefusedError"]

_FORBIDDEN = 403
_UNAUTHORIZED = 401


class RefusedError(Exception):
    """A request may not change anything."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class AdminToken:
    """The token in a file, read again when the file changes; a file that is not there yet refuses everybody."""

    def __init__(self, file: Path | None) -> None:
        self._secret = SecretFile(file, "admin token file") if file is not None else None

    def demand(self, authorization: str | None) -> None:
        """Return if the header carries the token, else raise RefusedError."""
        if self._secret is None:
            raise RefusedError(
                _FORBIDDEN, "Changes are switched off: start the exporter with --admin-token-file FILE to allow them."
            )
        try:
            token = self._secret.read()
        except SecretError as error:
            raise RefusedError(_FORBIDDEN, f"Changes are switched off: {error}.") from None
        scheme, _, given = (authorization or "").partition(" ")
        if scheme.lower() != "bearer":
            raise RefusedError(
                _UNAUTHORIZED, "Say who you are: Authorization: Bearer TOKEN, as in the admin token file."
            )
        if not hmac.compare_digest(given.strip().encode(), token.encode()):
            raise RefusedError(_UNAUTHORIZED, "That is not the token in the admin token file.")

    def is_in(self, authorization: str | None) -> bool:
        """Tell whether the header carries the token."""
        try:
            self.demand(authorization)
        except RefusedError:
            return False
        return True
