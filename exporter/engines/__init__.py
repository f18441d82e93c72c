"""Engines: one file each, found by being there. In: the modules of this folder. Out: their `ENGINE` objects by name."""

from importlib import import_module
from pkgutil import iter_modules

from exporter.dialect import Engine

__all__ = ["ENGINES"]

ENGINES: dict[str, Engine] = {
    engine.name: engine
    for engine in (import_module(f"{__name__}.{found.name}").ENGINE for found in iter_modules(__path__))
}
"""Every engine that we can read, by its name in fleet.yml."""
