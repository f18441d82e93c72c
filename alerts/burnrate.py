"""Burn rates: when the error budget is in danger.

In: an indicator, the fleet's objectives. Out: the alert expression for one severity.

Multi-window, multi-burn-rate alerts (Google, The Site Reliability Workbook, chapter 5): a rule speaks when `share` of
the budget would be gone within its long window, and stops soon after the trouble does, thanks to the short window.

    factor = share * SLO window / long window          30d: 14.4 (1h), 6 (6h), 3 (1d), 1 (3d)

The factor depends on the SLO window, so a budget of 7d is guarded by the same shares. It is kept within bounds:

- at most `REACHABLE / (1 - objective)`. With a 90 % objective 14.4 would ask for 144 % bad requests, which never
  happens. At the bound, 80 % bad requests over the long window are enough, whatever the objective;
- at least 1: a budget that burns no faster than it lasts is in no danger.

A floor on traffic keeps one bad request in a quiet hour from paging anybody.
"""

from dataclasses import dataclass
from datetime import timedelta
from decimal import ROUND_DOWN, Decimal

from alerts.model import Severity
from alerts.objectives import burn
from exporter.catalogue import MODEL, SLO
from exporter.fleet import Fleet
from exporter.objectives import Slos
from prometheus import windows
from prometheus.indicators import Indicator
from prometheus.partition import Part, partition
from prometheus.promql import Expr, Matcher, Seconds
from prometheus.windows import Window

__all__ = ["BURN_RULES", "FEWEST_BAD", "FEWEST_REQUESTS", "REACHABLE", "BurnRule", "factor", "in_danger"]

REACHABLE = Decimal("0.8")
"""The largest share of bad requests that a rule may wait for."""

FEWEST_REQUESTS = 20
"""Requests within the long window below which a share says nothing."""

FEWEST_BAD = 5
"""Bad requests within the long window below which nobody is bothered."""

_HUNDREDTH = Decimal("0.01")


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnRule:
    """Speak when `share` of the budget is spent within `long`, while it still burns in `short`."""

    severity: Severity
    short: Window
    long: Window
    share: Decimal


_WINDOWS = {window.span: window for window in (*windows.SHORT, *windows.LONG)}
_5M, _30M, _1H = (_WINDOWS[timedelta(minutes=minutes)] for minutes in (5, 30, 60))
_2H, _6H, _1D, _3D = (_WINDOWS[timedelta(hours=hours)] for hours in (2, 6, 24, 72))

BURN_RULES = (
    BurnRule(severity=Severity.PAGE, short=_5M, long=_1H, share=Decimal("0.02")),
    BurnRule(severity=Severity.PAGE, short=_30M, long=_6H, share=Decimal("0.05")),
    BurnRule(severity=Severity.TICKET, short=_2H, long=_1D, share=Decimal("0.1")),
    BurnRule(severity=Severity.TICKET, short=_6H, long=_3D, share=Decimal("0.1")),
)


def factor(rule: BurnRule, slo_window: timedelta, objective: Decimal) -> Decimal:
    """Return the burn rate above which the rule speaks, in hundredths."""
    wanted = rule.share * (slo_window // timedelta(seconds=1)) / (rule.long.span // timedelta(seconds=1))
    reachable = REACHABLE / (1 - objective)
    return min(max(wanted, Decimal(1)), reachable).quantize(_HUNDREDTH, rounding=ROUND_DOWN).normalize()


def in_danger(indicator: Indicator, severity: Severity, fleet: Fleet) -> Expr:
    """Build the condition under which the budget of a model is in danger; the value is the long window's burn rate."""
    first, *others = (
        _exceeded(indicator, rule, part)
        for rule in BURN_RULES
        if rule.severity is severity and rule.long.span <= fleet.slos.window
        for part in _factors(indicator, rule, fleet.slos)
    )
    return first.union(*others)


def _factors(indicator: Indicator, rule: BurnRule, slos: Slos) -> tuple[Part[Decimal], ...]:
    return partition(slos, lambda objectives: factor(rule, slos.window, indicator.objective(objectives)))


def _exceeded(indicator: Indicator, rule: BurnRule, part: Part[Decimal]) -> Expr:
    of_slo = Matcher.equal(SLO, indicator.slo)
    long, short = (
        burn(window).select(of_slo, *part.matchers).compare(">", part.value) for window in (rule.long, rule.short)
    )
    return long.intersect(short).intersect(*_enough(indicator, rule.long), on=(MODEL,))


def _enough(indicator: Indicator, window: Window) -> tuple[Expr, Expr]:
    """Require that enough requests stand behind a burn rate."""
    total, good = indicator.total(window).select(), indicator.good(window).select()
    seconds = Seconds(span=window.span)
    return (
        (total * seconds).compare(">=", FEWEST_REQUESTS),
        ((total - good) * seconds).compare(">=", FEWEST_BAD),
    )
