"""Catalogue of alerts: what boards, runbooks, routes and drills read.

In: the files of `alerts/groups`. Out: `GROUPS` and `ALERTS`, in the order of the files' names.
"""

import pkgutil
from importlib import import_module

import alerts.groups
from alerts.model import Alert, AlertGroup

__all__ = ["ALERTS", "GROUPS", "alert"]


def _groups() -> tuple[AlertGroup, ...]:
    names = sorted(module.name for module in pkgutil.iter_modules(alerts.groups.__path__))
    return tuple(import_module(f"alerts.groups.{name}").GROUP for name in names)


GROUPS: tuple[AlertGroup, ...] = _groups()
ALERTS: tuple[Alert, ...] = tuple(each for group in GROUPS for each in group.alerts)


def alert(name: str) -> Alert:
    """Return an alert by its name; raises KeyError."""
    return {each.name: each for each in ALERTS}[name]
