"""Access: how Prometheus reaches the exporters. In: `exporter` in fleet.yml. Out: addresses, and who it says it is."""

import re
from dataclasses import dataclass
from pathlib import Path

from exporter.document import FleetError, Node

__all__ = ["Access", "BasicAuth", "ClientTls", "access"]

_ADDRESS = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTls:
    """Whom Prometheus trusts, and the certificate it shows, where the exporter demands one."""

    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicAuth:
    """A user of the exporter's web configuration."""

    username: str
    password_file: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The exporters as host:port, none for the one that is started beside Prometheus; https where there is `tls`.

    Paths are absolute, since Prometheus starts relative ones elsewhere.
    """

    addresses: tuple[str, ...] = ()
    tls: ClientTls | None = None
    basic_auth: BasicAuth | None = None


def access(node: Node, base: Path) -> Access:
    """Read the section; raise FleetError for the first thing that cannot be used."""
    parts = node.mapping(optional=("addresses", "tls", "basic_auth"))
    user = parts["basic_auth"].mapping(required=("username", "password_file")) if "basic_auth" in parts else {}
    return Access(
        addresses=tuple(map(_address, parts["addresses"].items())) if "addresses" in parts else (),
        tls=_tls(parts["tls"], base) if "tls" in parts else None,
        basic_auth=BasicAuth(
            username=user["username"].text("a user name"),
            password_file=user["password_file"].existing_file(base).absolute(),
        )
        if user
        else None,
    )


def _tls(node: Node, base: Path) -> ClientTls:
    parts = node.mapping(optional=("ca_file", "cert_file", "key_file"))
    if ("cert_file" in parts) is not ("key_file" in parts):
        raise FleetError(f"{node.place}: cert_file and key_file belong together: give both, or none")
    return ClientTls(**{key: value.existing_file(base).absolute() for key, value in parts.items()})


def _address(node: Node) -> str:
    text = node.text("host:port")
    if not _ADDRESS.fullmatch(text):
        node.refuse("host:port of an exporter")
    return text
