"""TLS failure: why no TLS was agreed on -> a ScrapeError that says what to do about it. In: what OpenSSL says."""

import ssl

from exporter.failures import Reason, ScrapeError

__all__ = ["tls_error"]

_WORDS = {
    "WRONG_VERSION_NUMBER": "no TLS is spoken on this port: is it one for http?",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it speaks no TLS of version 1.2 or later",
    "UNSUPPORTED_PROTOCOL": "it speaks no TLS of version 1.2 or later",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it wants a client certificate, and a scrape has none",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "it wants a client certificate, or has old ciphers only",
}
"""By OpenSSL's names for the reasons; servers of TLS 1.2 have no word of their own for a certificate that they miss."""

_UNTRUSTED = frozenset({18, 19, 20, 21})
"""OpenSSL's codes for a certificate that is signed by itself, or by nobody whom we know."""


def tls_error(error: ssl.SSLError) -> ScrapeError:
    """Say why there is no TLS."""
    if isinstance(error, ssl.SSLCertVerificationError):
        fix = "; name its authority in tls: {ca_file: …}" if error.verify_code in _UNTRUSTED else ""
        return ScrapeError(Reason.TLS, f"certificate refused: {error.verify_message.rstrip('.')}{fix}")
    reason = error.reason or ""
    words = _WORDS.get(reason) or reason.replace("_", " ").lower() or type(error).__name__
    return ScrapeError(Reason.TLS, f"TLS failed: {words}")
