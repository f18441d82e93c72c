"""Sources: which pages can be read, each in the file of its name. In: the catalogue. Out: them, by name."""

from collections.abc import Mapping
from importlib import import_module

from exporter.catalogue import GPU_SOURCE
from exporter.gpu.page import PageSource

__all__ = ["DRIVER", "PAGE_SOURCES"]

DRIVER = "nvml"
"""The one source that is no page: the driver of this host."""

PAGE_SOURCES: Mapping[str, PageSource] = {
    name: import_module(f"exporter.gpu.{name}").SOURCE for name in GPU_SOURCE.values if name != DRIVER
}
