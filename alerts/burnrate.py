"""Burn rates: when the error budget is in danger.

In: an indicator, the fleet's objectives. Out: the alert expression for one severity.

Multi-window, multi-burn-rate alerts (Google, The Site Reliability Workbook, chapter 5): a rule speaks when `share` of
the budget is gone within its long window, and stops soon after the trouble does, thanks to the short window.

    factor = share * SLO window / long window          30d: 14.4 (1h), 6 (6h), 3 (1d), 1 (3d)

The textbook compares the burn rate with the factor, which tells the share spent only if traffic is even. At twice the
usual traffic 4 % of the budget are gone before it speaks, at night 1 % is enough. Ours differs in four ways, each of
which the backtest asked for (`python -m drills backtest`):

- the spend rate is compared, which weighs the burn rate with how busy the window was: a rule speaks if and only if the
  share is spent. It speaks a little `EARLY`, since counters are only seen now and then;
- the short window only has to tell that the trouble is not over: a quarter of the factor, an eighth within an hour.
  With more, a burst that spends most of the share would be missed if a tail spends the rest slowly; with less, the few
  bad requests of a healthy model page for hours after trouble that a window of hours remembers;
- at most every request can be bad. With a 90 % objective 14.4 would ask for 144 %, so a burn rate of
  `REACHABLE / (1 - objective)` in both windows is enough, whatever was spent: 80 % bad requests over the long window;
- the factor is at least 1: a budget that is spent no faster than it lasts is in no danger. Nobody is woken before it
  burns `LEAST_PAGED` times as fast: with a window of a day or a week a share of it is soon spent at the promised pace.

A floor on traffic keeps one bad request in a quiet hour from paging anybody.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import ROUND_DOWN, Decimal

from alerts.model import Severity
from alerts.objectives import burn, spend
from exporter.catalogue import MODEL, SLO
from exporter.fleet import Fleet
from exporter.objectives import Slos
from prometheus import windows
from prometheus.indicators import Indicator
from prometheus.partition import partition
from prometheus.promql import Expr, Matcher, Seconds
from prometheus.windows import Window

__all__ = [
    "BURN_RULES",
    "EARLY",
    "FEWEST_BAD",
    "FEWEST_REQUESTS",
    "LEAST_PAGED",
    "REACHABLE",
    "BurnRule",
    "factor",
    "in_danger",
]

REACHABLE = Decimal("0.8")
"""The largest share of bad requests that a rule may wait for."""

EARLY = Decimal("0.97")
"""The part of a rule's share at which it speaks."""

FEWEST_REQUESTS = 20
"""Requests within the long window below which a share says nothing."""

FEWEST_BAD = 5
"""Bad requests within the long window below which nobody is bothered."""

LEAST_PAGED = Decimal(2)
"""The burn rate below which nobody is woken: at this one the budget is gone in half of its window."""

_HUNDREDTH = Decimal("0.01")
_LEAST_NOT_OVER = Decimal("0.5")


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnRule:
    """Speak when `share` of the budget is spent within `long`, while it burns in `short` at a part of the factor."""

    severity: Severity
    short: Window
    long: Window
    share: Decimal
    not_over: Decimal = Decimal(1) / 4


_WINDOWS = {window.span: window for window in (*windows.SHORT, *windows.LONG)}
_5M, _30M, _1H = (_WINDOWS[timedelta(minutes=minutes)] for minutes in (5, 30, 60))
_2H, _6H, _1D, _3D = (_WINDOWS[timedelta(hours=hours)] for hours in (2, 6, 24, 72))

BURN_RULES = (
    BurnRule(severity=Severity.PAGE, short=_5M, long=_1H, share=Decimal("0.02"), not_over=Decimal(1) / 8),
    BurnRule(severity=Severity.PAGE, short=_30M, long=_6H, share=Decimal("0.05")),
    BurnRule(severity=Severity.TICKET, short=_2H, long=_1D, share=Decimal("0.1")),
    BurnRule(severity=Severity.TICKET, short=_6H, long=_3D, share=Decimal("0.1")),
)


def factor(rule: BurnRule, slo_window: timedelta, objective: Decimal) -> Decimal:
    """Return the burn rate above which the rule speaks at even traffic, in hundredths."""
    return _hundredths(min(_wanted(rule, slo_window), max(REACHABLE / (1 - objective), Decimal(1))))


def in_danger(indicator: Indicator, severity: Severity, fleet: Fleet) -> Expr:
    """Build the condition under which the budget of a model is in danger.

    The value is the long window's rate: how many times faster than it lasts the budget goes.
    """
    first, *others = (
        condition.intersect(*_enough(indicator, rule.long), on=(MODEL,))
        for rule in BURN_RULES
        if rule.severity is severity and rule.long.span <= fleet.slos.window
        for condition in (_spent(indicator, rule, fleet.slos.window), *_nearly_all_bad(indicator, rule, fleet.slos))
    )
    return first.union(*others)


def _spent(indicator: Indicator, rule: BurnRule, slo_window: timedelta) -> Expr:
    """Ask whether the share is spent, and the trouble not over."""
    of_slo = Matcher.equal(SLO, indicator.slo)
    wanted = _wanted(rule, slo_window)
    not_over = _hundredths(max(wanted * rule.not_over, _LEAST_NOT_OVER))
    spent = spend(rule.long).select(of_slo).compare(">", _hundredths(wanted * EARLY))
    return spent.intersect(burn(rule.short).select(of_slo).compare(">", not_over))


def _nearly_all_bad(indicator: Indicator, rule: BurnRule, slos: Slos) -> Iterator[Expr]:
    """Ask whether nearly all requests are bad, of models whose objective puts the factor out of reach."""
    wanted = _hundredths(_wanted(rule, slos.window))
    for part in partition(slos, lambda objectives: factor(rule, slos.window, indicator.objective(objectives))):
        if part.value < wanted:
            matchers = (Matcher.equal(SLO, indicator.slo), *part.matchers)
            long, short = (
                burn(window).select(*matchers).compare(">", part.value) for window in (rule.long, rule.short)
            )
            yield long.intersect(short)


def _wanted(rule: BurnRule, slo_window: timedelta) -> Decimal:
    """Return the rate that spends the rule's share within its long window, or the least that is worth telling."""
    seconds = timedelta(seconds=1)
    least = LEAST_PAGED if rule.severity is Severity.PAGE else Decimal(1)
    return max(rule.share * (slo_window // seconds) / (rule.long.span // seconds), least)


def _hundredths(rate: Decimal) -> Decimal:
    return rate.quantize(_HUNDREDTH, rounding=ROUND_DOWN).normalize()


def _enough(indicator: Indicator, window: Window) -> tuple[Expr, Expr]:
    """Require that enough requests stand behind a rate."""
    total, good = indicator.total(window).select(), indicator.good(window).select()
    seconds = Seconds(span=window.span)
    return (
        (total * seconds).compare(">=", FEWEST_REQUESTS),
        ((total - good) * seconds).compare(">=", FEWEST_BAD),
    )
