"""Windows and time: the spans that rules look back over, how often each is evaluated, and how durations are written.

In: the SLO window of the fleet and the time scale. Out: `Window` objects and Prometheus' duration text.
"""

from dataclasses import dataclass
from datetime import timedelta

__all__ = [
    "AT_ONCE",
    "FASTEST",
    "INTERVAL",
    "LONG",
    "NOW",
    "RECENT",
    "REPLICA",
    "SHORT",
    "TILE",
    "TimeScale",
    "Window",
    "duration_text",
    "longer",
    "over",
]

_MILLISECOND = timedelta(milliseconds=1)
_UNITS = (
    ("d", timedelta(days=1)),
    ("h", timedelta(hours=1)),
    ("m", timedelta(minutes=1)),
    ("s", timedelta(seconds=1)),
    ("ms", _MILLISECOND),
)

INTERVAL = timedelta(seconds=10)
"""How often targets are scraped and rules evaluated, unless a window says otherwise."""

AT_ONCE = timedelta(seconds=5)
"""For rules that wait for others: they read few recorded series, so asking often costs little and pages come sooner."""

FASTEST = 60
"""The largest time scale that commands take: beyond it scrapes come faster than the parts answer."""


def duration_text(duration: timedelta) -> str:
    """Print a duration in the largest unit that divides it: `90m`, `30d`, `166ms`."""
    for unit, size in _UNITS:
        if duration % size == timedelta():
            return f"{duration // size}{unit}"
    raise ValueError(f"{duration!r} is finer than a millisecond, the resolution of Prometheus")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeScale:
    """How many times faster than real the rules run; a drill of an hour takes a minute with `factor` 60."""

    factor: int = 1

    def __post_init__(self) -> None:
        """Refuse a factor under 1."""
        if self.factor < 1:
            raise ValueError(f"time scale: expected a whole number, 1 or more, got {self.factor}")

    @classmethod
    def read(cls, text: str) -> "TimeScale":
        """Read a factor from a command line; raise ValueError with a sentence."""
        if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= FASTEST:
            raise ValueError(f"expected a whole number, 1 to {FASTEST}, got {text!r}")
        return cls(factor=int(text))

    def span(self, duration: timedelta) -> timedelta:
        """Return the duration on this scale, in whole milliseconds; nothing but zero becomes zero."""
        scaled = (duration / self.factor) // _MILLISECOND * _MILLISECOND
        return max(scaled, _MILLISECOND) if duration else duration

    def text(self, duration: timedelta) -> str:
        """Print a duration on this scale."""
        return duration_text(self.span(duration))


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A span that rules look back over. `interval` is how often its rules are evaluated.

    A `tiled` window is not read from raw counters but summed from the recorded rates of the `TILE` window, so that its
    cost does not grow with the number of replicas. Those in `SHORT` count tiles back from now, the others take those at
    multiples of a tile, which may be as old as one.
    """

    span: timedelta
    interval: timedelta = INTERVAL
    tiled: bool = False

    @property
    def name(self) -> str:
        """The window as it stands in the names of recorded series, whatever the time scale."""
        return duration_text(self.span)


RECENT = Window(span=timedelta(minutes=1))
"""For boards: what happens now."""

TILE = Window(span=timedelta(minutes=5), interval=timedelta(seconds=30))
NOW = Window(span=timedelta(minutes=2), interval=TILE.interval)
"""What users feel at the moment, for whoever cannot wait for a budget to burn."""

REPLICA = Window(span=TILE.span, interval=timedelta(minutes=2))
"""The one window recorded per replica, for drill-down."""

SHORT = (
    TILE,
    Window(span=timedelta(minutes=30), interval=TILE.interval, tiled=True),
    Window(span=timedelta(hours=1), interval=TILE.interval, tiled=True),
)
"""Evaluated together with `NOW`. The interval divides a tile, so that those counted back lie side by side."""

LONG = (
    Window(span=timedelta(hours=2), interval=timedelta(seconds=30), tiled=True),
    Window(span=timedelta(hours=6), interval=timedelta(seconds=30), tiled=True),
    Window(span=timedelta(days=1), interval=timedelta(minutes=1), tiled=True),
    Window(span=timedelta(days=3), interval=timedelta(minutes=1), tiled=True),
)
# Half of Prometheus' lookback of 5m: with a longer interval the recorded series would blink.
_BUDGET_INTERVAL = timedelta(minutes=2)


def over(slo_window: timedelta) -> tuple[Window, ...]:
    """Return every window an indicator is recorded over, shortest first; the last one is that of the error budget."""
    return (*SHORT, *longer(slo_window))


def longer(slo_window: timedelta) -> tuple[Window, ...]:
    """Return the windows beyond the short ones."""
    budget = Window(span=slo_window, interval=_BUDGET_INTERVAL, tiled=True)
    return (*(window for window in LONG if window.span < slo_window), budget)
