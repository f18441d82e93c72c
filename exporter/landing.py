"""Landing: the page for a person. In: the last known outcome of each replica. Out: HTML; nothing is scraped for it."""

import time

from exporter.service import Service

__all__ = ["landing"]


def landing(service: Service) -> str:
    """Write the landing page."""
    return f"<!doctype html><title>Servewatch</title>{len(service.watches)} {time.time()}"
