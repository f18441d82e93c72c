"""Checks: every kind of mistake that the lint knows.

In: the modules of this folder, each with its `CHECKS`. Out: `CHECKS`, by the order of the modules' names.
"""

import pkgutil
from importlib import import_module

from prometheus.lint.check import Check

__all__ = ["CHECKS"]


def _checks() -> tuple[Check, ...]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return tuple(check for name in names for check in import_module(f"{__name__}.{name}").CHECKS)


CHECKS: tuple[Check, ...] = _checks()
