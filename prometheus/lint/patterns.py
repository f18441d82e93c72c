"""Patterns: whether a regular expression of a selector matches a value.

In: a pattern as Go reads it, anchored at both ends, and a value. Out: whether it matches; None where only Go can tell.
"""

import re
import warnings

__all__ = ["matches"]


def matches(pattern: str, value: str) -> bool | None:
    r"""Tell whether a pattern matches; None for what Python reads otherwise or not at all: `\pL`, `[[:alpha:]]`."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)  # Python's word about a set within a set
        try:
            return re.fullmatch(pattern, value) is not None
        except (re.error, FutureWarning):
            return None
