"""Exporter: scrape an engine, parse its page, normalise it to one set of names, expose it to Prometheus."""

__version__ = "0.1.0"
