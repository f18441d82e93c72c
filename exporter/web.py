"""Web: what guards the exporter's own socket. In: a web configuration file. Out: TLS and users, kept as the files are.

A connection gets the certificate and authority that are in the files when it begins, a request is checked against the
users that are there when it comes. A file that cannot be used leaves what was there before, and a line in the log.
"""

import logging
import ssl
from dataclasses import replace
from pathlib import Path

from exporter.document import FleetError
from exporter.secret import Version, version
from exporter.web_config import TlsServer, WebConfig, load_web_config

__all__ = ["Web"]

_log = logging.getLogger(__name__)


class Web:
    """The web configuration in use."""

    def __init__(self, file: Path) -> None:
        """Read the file; raise FleetError where it cannot be used."""
        self._file = file
        self.config = load_web_config(file)
        self._context = _context(self.config.tls) if self.config.tls else None
        self._versions = self._look()
        self._refused = ""
        if self.config.users and self.config.tls is None:
            _log.warning("%s: passwords travel in clear text: add tls_server_config", file.name)

    def front(self) -> ssl.SSLContext | None:
        """Answer the context to listen with; None for plain http."""
        if self.config.tls is None:
            return None
        front = _context(self.config.tls)
        front.sni_callback = self._swap
        return front

    def refresh(self) -> None:
        """Take changed files into use."""
        versions = self._look()
        if versions == self._versions:
            return
        try:
            config = load_web_config(self._file)
            self._refuse_what_needs_a_restart(config)
            context = _context(config.tls) if config.tls else None
        except FleetError as error:
            if str(error) != self._refused:
                _log.warning("web configuration not reloaded: %s", error)
            self._refused = str(error)
            return
        self.config, self._context, self._versions, self._refused = config, context, versions, ""
        self._versions = self._look()
        _log.info("web configuration reloaded: %s", self._file.name)

    def _swap(self, connection: "ssl.SSLObject | ssl.SSLSocket", _name: str | None, _front: ssl.SSLContext) -> None:
        """Have a connection that begins use the present certificate and authority."""
        if self._context is not None:
            connection.context = self._context

    def _look(self) -> dict[Path, Version | None]:
        files = (self._file, *(self.config.tls.files if self.config.tls else ()))
        return {file: _version_or_none(file) for file in files}

    def _refuse_what_needs_a_restart(self, config: WebConfig) -> None:
        if _settings(config.tls) != _settings(self.config.tls):
            raise FleetError(
                f"{self._file.name}: tls_server_config: only files can change while the exporter runs;"
                " restart it for another client_auth_type or TLS version, or to switch TLS on or off"
            )
        if self.config.users and not config.users:  # perhaps somebody is only half done with writing the file
            raise FleetError(
                f"{self._file.name}: basic_auth_users: the last user can only go at a restart:"
                " until then those who are known stay so"
            )


def _settings(tls: TlsServer | None) -> TlsServer | None:
    """Answer what is fixed while we listen."""
    nowhere = Path()
    return replace(tls, cert_file=nowhere, key_file=nowhere, client_ca_file=None) if tls else None


def _version_or_none(file: Path) -> Version | None:
    try:
        return version(file)
    except OSError:
        return None


def _context(tls: TlsServer) -> ssl.SSLContext:
    """Make a context; raise FleetError where the files do not hold what they should."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version, context.maximum_version = tls.min_version, tls.max_version
    context.verify_mode = tls.client_auth
    context.set_alpn_protocols(["http/1.1"])
    context.options |= ssl.OP_NO_TICKET  # a resumed session would be trusted after its authority is not any more
    context.num_tickets = 0
    try:
        context.load_cert_chain(tls.cert_file, tls.key_file, password=lambda: "")  # never ask the terminal for one
    except (OSError, ValueError) as error:
        raise FleetError(
            f"{tls.cert_file} and {tls.key_file}: expected a certificate and its key in PEM, without a password"
            f" ({_reason(error)})"
        ) from None
    if tls.client_ca_file is not None:
        try:
            context.load_verify_locations(tls.client_ca_file)
        except (OSError, ValueError) as error:
            raise FleetError(f"{tls.client_ca_file}: expected certificates in PEM ({_reason(error)})") from None
    return context


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", "") or type(error).__name__).replace("_", " ").lower()
