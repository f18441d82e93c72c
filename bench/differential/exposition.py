"""What both readers are given, and what each makes of it."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Exposition", "Verdict", "bits"]

Identity = frozenset[tuple[str, str]]
"""A series: all its labels, with its name as `__name__`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposition:
    """A page and the format that its Content-Type promises."""

    body: bytes
    openmetrics: bool = False

    @property
    def content_type(self) -> str:
        """What the page is served as."""
        if self.openmetrics:
            return "application/openmetrics-text; version=1.0.0; charset=utf-8"
        return "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a reader took a page, and the bits of each value that it read.

    A `fault` is a finding whatever the other reader says: a crash. `why` is no part of a comparison.
    """

    accepted: bool
    samples: Mapping[Identity, int] = field(default_factory=dict)
    fault: str = ""
    why: str = field(default="", compare=False)

    def __str__(self) -> str:
        """Answer what a person needs to see why two verdicts differ."""
        if self.fault:
            return self.fault
        if not self.accepted:
            return f"refused ({self.why})" if self.why else "refused"
        shown = ", ".join(_shown(identity, value) for identity, value in sorted(self.samples.items(), key=str)[:5])
        return f"accepted {len(self.samples)} series: {shown}"


def bits(value: float) -> int:
    """Answer the bits of a value, so that -0 is not 0; every NaN is the same one, as in Prometheus."""
    return int.from_bytes(struct.pack(">d", float("nan") if value != value else value))  # noqa: PLR0124 - only NaN


def _shown(identity: Identity, value: int) -> str:
    labels = dict(identity)
    name = labels.pop("__name__", "")
    return f"{name}{ascii(labels) if labels else ''} {struct.unpack('>d', value.to_bytes(8))[0]!r}"
