"""Web configuration: a file in the form of Prometheus' exporter-toolkit -> how to serve, or FleetError with a sentence.

https://github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md describes the form. What we cannot
do as it says is refused, so that nobody believes in a protection that is not there.
"""

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from exporter.document import FleetError, Node, read

__all__ = ["TlsServer", "WebConfig", "load_web_config"]

_BCRYPT = re.compile(r"\$2[aby]\$([0-9]{2})\$[./A-Za-z0-9]{53}")
_COSTS = range(4, 16)
"""A cost of 15 takes seconds for each new password; above it nobody could log in in time."""
_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
_UNVERIFIED = ("RequestClientCert", "RequireAnyClientCert")
_TLS_LEFT_OUT = {
    "cipher_suites": "the ciphers are OpenSSL's defaults; leave it out, or set min_version: TLS13",
    "curve_preferences": "the curves are OpenSSL's defaults; leave it out",
    "prefer_server_cipher_suites": "OpenSSL's defaults hold; leave it out",
    "client_allowed_sans": "names in client certificates are not checked; give those clients an authority of their own",
    "cert": "certificates stand in files; use cert_file",
    "key": "keys stand in files; use key_file",
    "client_ca": "authorities stand in files; use client_ca_file",
}
_HTTP_LEFT_OUT = {
    "headers": "no headers are added; put a reverse proxy before the exporter",
    "http2": "the exporter speaks HTTP/1.1 only; write http2: false, or leave it out",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsServer:
    """How to serve https."""

    cert_file: Path
    key_file: Path
    client_ca_file: Path | None = None
    client_auth: ssl.VerifyMode = ssl.CERT_NONE
    min_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    max_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that may be rewritten while we serve."""
        return tuple(file for file in (self.cert_file, self.key_file, self.client_ca_file) if file is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebConfig:
    """What the file says; `users` maps names to bcrypt hashes, nobody is asked for a password if it is empty."""

    tls: TlsServer | None = None
    users: Mapping[str, bytes] = field(default_factory=dict, repr=False)


def load_web_config(path: Path) -> WebConfig:
    """Read the file; raise FleetError for the first thing that cannot be done as it says."""
    root = read(path)
    parts = root.mapping(optional=("tls_server_config", "http_server_config", "basic_auth_users"))
    for key in ("tls_server_config", "basic_auth_users"):
        if key not in parts and key in (root.value or {}):
            root.child(key).refuse("what protects the exporter, or no such key")
    http = parts["http_server_config"].mapping(optional=tuple(_HTTP_LEFT_OUT)) if "http_server_config" in parts else {}
    if "http2" in http and not http["http2"].truth():
        del http["http2"]
    _refuse_left_out(http, _HTTP_LEFT_OUT)
    return WebConfig(
        tls=_tls(parts["tls_server_config"], path.parent) if "tls_server_config" in parts else None,
        users=_users(parts["basic_auth_users"]) if "basic_auth_users" in parts else {},
    )


def _tls(node: Node, base: Path) -> TlsServer:
    needed, known = ("cert_file", "key_file"), ("client_auth_type", "client_ca_file", "min_version", "max_version")
    _refuse_left_out(node.mapping(optional=(*needed, *known, *_TLS_LEFT_OUT)), _TLS_LEFT_OUT)
    parts = node.mapping(required=needed, optional=known)
    tls = TlsServer(
        cert_file=parts["cert_file"].existing_file(base),
        key_file=parts["key_file"].existing_file(base),
        client_ca_file=parts["client_ca_file"].existing_file(base) if "client_ca_file" in parts else None,
        client_auth=_client_auth(parts["client_auth_type"]) if "client_auth_type" in parts else ssl.CERT_NONE,
        min_version=_version(parts["min_version"]) if "min_version" in parts else ssl.TLSVersion.TLSv1_2,
        max_version=_version(parts["max_version"]) if "max_version" in parts else ssl.TLSVersion.TLSv1_3,
    )
    if tls.min_version > tls.max_version:
        parts["min_version"].refuse("a version that is not above max_version")
    if (tls.client_auth is ssl.CERT_NONE) is not (tls.client_ca_file is None):
        raise FleetError(
            f"{node.place}: client_ca_file and client_auth_type belong together:"
            " give both (client_auth_type: RequireAndVerifyClientCert), or none"
        )
    return tls


def _client_auth(node: Node) -> ssl.VerifyMode:
    kind = node.text(f"one of: {', '.join(_CLIENT_AUTH)}")
    if kind in _UNVERIFIED:
        node.refuse("a type that verifies (OpenSSL takes no certificate that it does not verify)")
    if kind not in _CLIENT_AUTH:
        node.refuse(f"one of: {', '.join(_CLIENT_AUTH)}")
    return _CLIENT_AUTH[kind]


def _version(node: Node) -> ssl.TLSVersion:
    version = node.text(f"one of: {', '.join(_VERSIONS)}")
    if version not in _VERSIONS:
        node.refuse(f"one of: {', '.join(_VERSIONS)}")
    return _VERSIONS[version]


def _refuse_left_out(parts: Mapping[str, Node], left_out: Mapping[str, str]) -> None:
    for key, why in left_out.items():
        if key in parts:
            raise FleetError(f"{parts[key].place}: {why}")


def _users(node: Node) -> dict[str, bytes]:
    users = {}
    if not isinstance(node.value, dict):
        raise FleetError(f"{node.place}: expected a mapping from user name to bcrypt hash")
    for name, value in node.entries().items():
        match = _BCRYPT.fullmatch(value.value) if isinstance(value.value, str) else None
        if match is None or ":" in name:  # what was got is not shown: it may be the password itself
            raise FleetError(
                f"{node.place}: expected a name without ':' and a bcrypt hash such as `htpasswd -nB NAME`"
                f" prints, got something else for {name!r}"
            )
        if int(match[1]) not in _COSTS:
            raise FleetError(f"{value.place}: expected a bcrypt cost from 4 to 15, got {int(match[1])}")
        users[name] = match[0].encode()
    return users
