"""Inline: an alert as queries over few recorded series, so that months of the others need not be stored.

In: generated rule files, as text; names of recorded series to leave alone. Out: `Question` objects. Other recorded
series are replaced by the expressions that record them, with the matchers handed down; labels that a recording rule
adds are added by `label_replace`.

Exact: every expression, as Prometheus evaluates it. Left out: that groups of rules take turns. Each group sees what the
one before recorded up to an interval ago; the sum of these delays at worst, `lag`, is added to every time of an alert.
Left out too: what alerts say about each other. One that keeps quiet while another fires counts as if it spoke.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import yaml

from prometheus.windows import duration_text

__all__ = ["Branch", "Question", "Rules", "seconds"]

_TEXT = r'"(?:[^"\\]|\\.)*"'
_MATCHERS = rf"\{{(?:[^\"}}]|{_TEXT})*\}}"
_NAME = r"[A-Za-z_]\w*(?::\w+)+"
_RANGE = r"\[[^\]:]+\]"
_RECORDED = re.compile(
    rf"{_TEXT}|(?<!\w)(?P<name>{_NAME})(?P<matchers>{_MATCHERS})?(?P<range>{_RANGE})?(?: offset (?P<shift>\w+))?"
)
_SCRAPED = re.compile(rf"{_TEXT}|(?<![\w:])(?P<metric>llm_\w+|model:\w+:\w+)(?P<matchers>\{{)?")
_SELECTOR = re.compile(
    rf"{_TEXT}|(?P<what>(?<![\w:])(?:llm_\w+|{_NAME})(?:{_MATCHERS})?(?:{_RANGE})?)(?: offset (?P<before>\w+))?"
)
_MATCHER = re.compile(rf"(\w+)(=~|!~|!=|=)({_TEXT})")
_BRACKET = re.compile(rf"{_TEXT}|[({{\[]|[)}}\]]|\bor\b")
_MEAN = re.compile(r":avg\d+d$")
_UNIT = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}

Matchers = list[tuple[str, str, str]]


def seconds(duration: str) -> float:
    """Read a duration as Prometheus writes it, in seconds."""
    return sum(float(number) * _UNIT[unit] for number, unit in re.findall(r"(\d+)(ms|s|m|h|d)", duration))


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One side of the outermost `or` of an alert; `lag` is the worst delay through the groups behind it, in seconds."""

    query: str
    lag: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One alert rule as queries, any of which makes it active. Times are in seconds."""

    alert: str
    labels: Mapping[str, str]
    branches: tuple[Branch, ...]
    delay: float = 0
    keep: float = 0

    @property
    def severity(self) -> str:
        """Who hears of it."""
        return self.labels["severity"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recording:
    expr: str
    constant: Mapping[str, str]
    group: str
    interval: float


class Rules:
    """The recording and alerting rules of generated files; `kept` are recorded series that queries may name."""

    def __init__(self, files: Iterable[str], kept: frozenset[str]) -> None:
        groups = [group for text in files for group in yaml.safe_load(text)["groups"]]
        self.kept = kept
        self._recorded: dict[str, list[_Recording]] = {}
        self._alerts: list[tuple[Mapping[str, Any], float]] = []
        for group in groups:
            interval = seconds(group["interval"])
            for rule in group["rules"]:
                if "alert" in rule:
                    self._alerts.append((rule, interval))
                else:
                    self._recorded.setdefault(rule["record"], []).append(
                        _Recording(
                            expr=rule["expr"],
                            constant=rule.get("labels", {}),
                            group=group["name"],
                            interval=interval,
                        )
                    )

    @property
    def means(self) -> frozenset[str]:
        """Those of the kept that are means over the SLO window, which hardly change from one evaluation to the next."""
        return frozenset(name for name in self.kept if _MEAN.search(name))

    def recording(self, name: str) -> str:
        """Return what records a series that is kept, over scraped series alone."""
        (rule,) = self._recorded[name]
        return self._inline(rule.expr, ())

    def questions(self, alerts: Collection[str]) -> Iterator[Question]:
        """Yield the rules of the alerts named."""
        for rule, interval in self._alerts:
            if rule["alert"] in alerts:
                delay, keep = (seconds(rule.get(key, "0s")) for key in ("for", "keep_firing_for"))
                sides = self.branches(rule["expr"], interval, whole=delay > 0)
                yield Question(alert=rule["alert"], labels=rule["labels"], branches=sides, delay=delay, keep=keep)

    def branches(self, expr: str, interval: float, *, whole: bool) -> tuple[Branch, ...]:
        """Make queries of an alert's expression that is evaluated every `interval` seconds.

        An alert that waits stays `whole`: one side may hand over to the other while it is pending.
        """
        sides = [expr] if whole else _sides(expr)
        return tuple(Branch(query=self._inline(side, self.kept), lag=interval + self._lag(side)) for side in sides)

    def _inline(self, expr: str, kept: Collection[str]) -> str:
        """Replace recorded series, but those to be kept, by what records them."""

        def replaced(found: re.Match[str]) -> str:
            name = found["name"]
            if name is None or name in kept:
                return found.group()
            matchers = _MATCHER.findall(found["matchers"] or "")
            rules = [rule for rule in self._recorded[name] if _can_match(rule.constant, matchers)]
            text = f"({' or '.join(self._recorded_by(rule, matchers, kept) for rule in rules)})"
            # A range of a recorded series becomes a subquery with a sample per evaluation of its group.
            if found["range"]:
                text = f"{text}{found['range'][:-1]}:{rules[0].interval:g}s]"
            return _shifted(text, found["shift"]) if found["shift"] else text

        return _RECORDED.sub(replaced, expr)

    def _recorded_by(self, rule: _Recording, matchers: Matchers, kept: Collection[str]) -> str:
        handed_down = [matcher for matcher in matchers if matcher[0] not in rule.constant]
        text = self._inline(rule.expr, kept)
        if handed_down:
            text = _handed_down(text, ",".join("".join(matcher) for matcher in handed_down))
        for label, value in rule.constant.items():
            text = f'label_replace({text}, "{label}", "{value}", "", "")'
        return text if rule.constant else f"({text})"

    def _lag(self, expr: str, group: str = "") -> float:
        """Return the longest chain of intervals behind an expression, in seconds; a mean over weeks is never late.

        Rules of one group are evaluated one after the other and do not wait.
        """
        names = [name for found in _RECORDED.finditer(expr) if (name := found["name"]) and not _MEAN.search(name)]
        rules = [rule for name in names for rule in self._recorded[name]]
        waits = ((0.0 if rule.group == group else rule.interval) + self._lag(rule.expr, rule.group) for rule in rules)
        return max(waits, default=0.0)


def _sides(expr: str) -> list[str]:
    """Take an expression apart at its outermost `or`, which binds less tightly than anything else."""
    sides, depth, start = [], 0, 0
    for found in _BRACKET.finditer(expr):
        depth += (found.group() in "({[") - (found.group() in ")}]")
        if found.group() == "or" and depth == 0:
            sides.append(expr[start : found.start()])
            start = found.end()
    return [*sides, expr[start:]]


def _can_match(constant: Mapping[str, str], matchers: Matchers) -> bool:
    """Tell whether a rule's own labels fit; a matcher of another kind is not looked into."""
    return all(constant.get(label, value[1:-1]) == value[1:-1] for label, sign, value in matchers if sign == "=")


def _shifted(text: str, shift: str) -> str:
    """Ask what an expression was: each of its selectors looks that much further back."""

    def back(found: re.Match[str]) -> str:
        if not found["what"]:
            return found.group()
        so_far = seconds(found["before"] or "0s") + seconds(shift)
        return f"{found['what']} offset {duration_text(timedelta(seconds=so_far))}"

    return _SELECTOR.sub(back, text)


def _handed_down(text: str, matchers: str) -> str:
    def put(found: re.Match[str]) -> str:
        if not found["metric"]:
            return found.group()
        return f"{found['metric']}{{{matchers}" + ("," if found["matchers"] else "}")

    return _SCRAPED.sub(put, text)
