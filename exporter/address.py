"""Address: where something listens, as fleet.yml says it, when two are the same, with which key, and whom to trust."""

import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from exporter.document import FleetError, Node

__all__ = ["guarded", "origin", "server"]

_HOST = re.compile(
    r"(?=.{1,254}$)\w(?:[\w-]{0,61}\w)?(?:\.\w(?:[\w-]{0,61}\w)?)*\.?"  # what a name can be, or an address
    r"|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]+(?:%[\w.-]+)?"
)
_PORTS = {"http": 80, "https": 443}


def origin(node: Node) -> str:
    """Read http(s)://host[:port], without a slash at the end."""
    expected = "http(s)://host[:port]"
    text = node.text(expected)
    try:
        parts = urlsplit(text)
        usable = parts.scheme in _PORTS and _HOST.fullmatch(parts.hostname or "") is not None and parts.port != 0
    except ValueError:
        usable = False
    if not usable or " " in text or parts.netloc.endswith(":"):
        node.refuse(expected)
    if "@" in parts.netloc:
        raise FleetError(f"{node.place}: expected {expected} without a password; use api_key_file")
    if parts.path not in {"", "/"} or parts.query or parts.fragment or "?" in text or "#" in text:
        node.refuse(f"{expected} without a path")
    return f"{parts.scheme}://{parts.netloc.lower()}"


def server(url: str) -> tuple[str | None, int]:
    """Answer host and port, which are the same for two spellings of one address."""
    parts = urlsplit(url)
    return parts.hostname, parts.port or _PORTS[parts.scheme]


def guarded(parts: Mapping[str, Node], base: Path, what: str) -> tuple[str, Path | None, Path | None]:
    """Read `url`, `api_key_file` and `tls` of `what`: the origin, the file of the key, that of the authorities."""
    tls = parts["tls"].mapping(optional=("ca_file",)) if "tls" in parts else {}
    url = origin(parts["url"])
    if tls and not url.startswith("https:"):
        parts["url"].refuse(f"https://host[:port], since the {what} has tls")
    key = parts["api_key_file"].existing_file(base) if "api_key_file" in parts else None
    return url, key, _authorities(tls["ca_file"], base) if "ca_file" in tls else None


def _authorities(node: Node, base: Path) -> Path:
    """Read the path of a file of certificates, relative to `base`."""
    path = node.existing_file(base)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except (OSError, ValueError):  # an ssl.SSLError is an OSError
        node.refuse("a file of certificates (PEM)")
    return path
