"""Rule files: the rules of a file as Prometheus 2.42 and 3.16 both read it, and the queries in their annotations.

In: a file's name and text. Out: `Written` expressions; raises SourceError for what Prometheus would not load.

    # lint ignore: CHECK reason      above a rule or within it: the check does not apply to this rule
"""

import math
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial

import promql_parser
import yaml

from prometheus.lint.check import Rule, Use
from prometheus.lint.problem import Position
from prometheus.lint.sources.scalars import place_in
from prometheus.lint.written import SourceError, Written
from prometheus.windows import INTERVAL

__all__ = ["read"]

_GROUP_KEYS = frozenset({"name", "interval", "limit", "rules"})
_RULE_KEYS = frozenset({"record", "alert", "expr", "for", "keep_firing_for", "labels", "annotations"})
_RECORDED = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_IGNORE = re.compile(r"#\s*lint ignore:\s*(?P<check>[\w-]*)\s*(?P<reason>.*)")
_QUERY = re.compile(r"query\s+\(?(?:printf\s+)?(?:`(?P<raw>[^`]*)`|\"(?P<quoted>(?:\\.|[^\"\\])*)\")")
_DURATION = re.compile(r"0|(?=.)(?:\d+y)?(?:\d+w)?(?:\d+d)?(?:\d+h)?(?:\d+m)?(?:\d+s)?(?:\d+ms)?", re.ASCII)
_LONGEST = timedelta(microseconds=2**63 // 1000)
"""Prometheus counts in nanoseconds, in 64 bits."""
_MOST = 2**63
_NOTHING, _TEXT = "tag:yaml.org,2002:null", "tag:yaml.org,2002:str"
_ARGUMENT = re.compile(r"%(?:\[\d+\])?[qvs]")

Mapping = dict[str, yaml.Node]


def read(file: str, text: str) -> tuple[Written, ...]:
    """Read the rules of a file; raises SourceError."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Position(line=mark.line + 1, column=mark.column + 1) if mark else Position(line=1, column=1)
        raise SourceError(f"not YAML: {error.problem}", position=place, fix="mend the file") from error
    except RecursionError:
        raise SourceError("nested too deeply", position=Position(line=1, column=1), fix="mend the file") from None
    if root is None:
        return ()
    groups = _mapping(root, frozenset({"groups"})).get("groups")
    names: set[str] = set()
    return tuple(
        written
        for group in _items(groups)
        for rule, interval in _rules(group, names)
        for written in _rule(file, text, rule, interval)
    )


def _rules(group: yaml.Node, names: set[str]) -> list[tuple[yaml.Node, timedelta]]:
    """Return the rules of a group, each with the interval it is evaluated at."""
    parts = _mapping(group, _GROUP_KEYS)
    name = _text(parts["name"]) if "name" in parts else ""
    if not name or name in names:
        wrong = f"two groups are named {name!r}" if name else "a group has no name"
        raise SourceError(wrong, position=_position(group), fix="give each group of a file its own name")
    names.add(name)
    if "limit" in parts and not _is_number(parts["limit"]):
        fix = "a whole number of series or alerts; 0 is no limit"
        raise SourceError("limit is no number", position=_position(parts["limit"]), fix=fix)
    interval = (_duration(parts["interval"]) if "interval" in parts else timedelta()) or INTERVAL
    return [(rule, interval) for rule in _items(parts.get("rules"))]


def _rule(file: str, text: str, node: yaml.Node, interval: timedelta) -> Iterator[Written]:
    parts = _mapping(node, _RULE_KEYS)
    kinds = [key for key in ("record", "alert") if key in parts]
    if len(kinds) != 1 or "expr" not in parts:
        raise SourceError("not a rule", position=_position(node), fix="a rule has expr, and either record or alert")
    name = _text(parts[kinds[0]])
    if kinds == ["record"] and not _RECORDED.fullmatch(name):
        raise SourceError(f"{name!r} is no name", position=_position(node), fix="letters, digits, '_' and ':'")
    delay, _ = (_duration(parts[key]) if key in parts else timedelta() for key in ("for", "keep_firing_for"))
    rule = Rule(
        name=name,
        is_alert=kinds == ["alert"],
        labels=_texts(parts.get("labels")),
        annotations=_texts(parts.get("annotations")),
        delay=delay,
        interval=interval,
    )
    ignored = frozenset(_ignored(text, node))
    expr = _scalar(parts["expr"])
    top = _position(node)
    yield Written(
        file=file,
        text=_text(expr),
        use=Use.RULE,
        place=place_in(expr, text),
        top=top,
        rule=rule,
        ignored=ignored,
    )
    for annotation in _mapping(parts["annotations"]).values() if "annotations" in parts else ():
        for query, offset in _queries(_text(annotation)):
            place = place_in(_scalar(annotation), text, after=offset)
            yield Written(file=file, text=query, use=Use.LOOK, place=place, top=top, ignored=ignored)


def _queries(template: str) -> Iterator[tuple[str, int]]:
    """Yield what an annotation asks Prometheus when it is shown, with the alert's labels as variables."""
    for found in _QUERY.finditer(template):
        group = "raw" if found["raw"] is not None else "quoted"
        yield _ARGUMENT.sub(lambda verb: f'"${"_" * (len(verb[0]) - 3)}"', found[group]), found.start(group)


def _ignored(text: str, node: yaml.Node) -> Iterator[str]:
    """Yield the checks that comments above or within a rule switch off; each needs a reason."""
    lines = text.splitlines()
    first = node.start_mark.line
    while first and _is_remark(lines[first - 1]):
        first -= 1
    for number, line in enumerate(lines[first : _end(node)], start=first + 1):
        found = _IGNORE.search(line)
        if found and not (found["check"] and found["reason"]):
            place = Position(line=number, column=found.start() + 1)
            raise SourceError("a check is ignored without a reason", position=place, fix="# lint ignore: CHECK reason")
        if found:
            yield found["check"]


def _end(node: yaml.Node) -> int:
    """Count the lines up to the end of a value; PyYAML's mark of a block is where the next one begins."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    is_block = isinstance(node, yaml.ScalarNode) and node.style in {"|", ">"}
    return node.end_mark.line + (0 if is_block else 1)


def _is_remark(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _mapping(node: yaml.Node, known: frozenset[str] | None = None) -> Mapping:
    if not isinstance(node, yaml.MappingNode):
        raise SourceError("expected a mapping", position=_position(node), fix="see rules.d/README.md")
    found: Mapping = {}
    for key, value in node.value:
        if known is not None and key.value not in known:
            fix = f"keys that every Prometheus since 2.42 reads: {', '.join(sorted(known))}"
            raise SourceError(f"unknown key {key.value!r}", position=_position(key), fix=fix)
        if key.value in found:
            raise SourceError(f"key {key.value!r} is given twice", position=_position(key), fix="keep one")
        found[key.value] = value
    return found


def _items(node: yaml.Node | None) -> list[yaml.Node]:
    if node is None or (isinstance(node, yaml.ScalarNode) and not node.value):
        return []
    if not isinstance(node, yaml.SequenceNode):
        raise SourceError("expected a list", position=_position(node), fix="see rules.d/README.md")
    return list(node.value)


def _texts(node: yaml.Node | None) -> dict[str, str]:
    entries = _mapping(node) if node is not None else {}
    for key, value in entries.items():
        if not _LABEL.fullmatch(key) or key == "__name__":
            raise SourceError(f"{key!r} is no name", position=_position(value), fix="letters, digits and '_'")
    return {key: _text(value) for key, value in entries.items()}


def _text(node: yaml.Node) -> str:
    return str(_scalar(node).value)


def _scalar(node: yaml.Node) -> yaml.ScalarNode:
    if not isinstance(node, yaml.ScalarNode):
        raise SourceError("expected text", position=_position(node), fix="put it in quotes")
    return node


def _duration(node: yaml.Node) -> timedelta:
    text = _text(node)
    if _DURATION.fullmatch(text):
        duration = promql_parser.parse_duration(text) if text.strip("0ywdhms") else timedelta()
        if duration <= _LONGEST:
            return duration
    raise SourceError(f"{text!r} is no duration", position=_position(node), fix="such as 5m or 1h30m")


def _is_number(node: yaml.Node) -> bool:
    """Tell whether Prometheus reads a number of 64 bits; it cuts off fractions, and takes nothing at all for 0."""
    if not isinstance(node, yaml.ScalarNode):
        return False
    if node.tag == _NOTHING:
        return True
    is_text = node.style is not None and node.tag == _TEXT
    return not is_text and node.value.isascii() and -_MOST <= _number(node.value) < _MOST


def _number(text: str) -> float:
    """Read a number as YAML 1.1 and 1.2 write them; what is none is not a number."""
    kinds: tuple[Callable[[str], float], ...] = (partial(int, base=0), float)
    for kind in kinds:
        try:
            return kind(text)
        except ValueError:
            continue
    return math.nan


def _position(node: yaml.Node) -> Position:
    return Position(line=node.start_mark.line + 1, column=node.start_mark.column + 1)
