"""Linting: files -> problems. Pure.

In: {path: text} of the files to judge, and the `Vocabulary` of a fleet and of the rules that are loaded beside them.
Out: `Problem`s, in the order of their places.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath

from exporter.fleet import Fleet
from prometheus.lint.check import Expression
from prometheus.lint.checks import CHECKS
from prometheus.lint.infer import infer
from prometheus.lint.problem import Position, Problem, Severity
from prometheus.lint.reading import ExpressionError, read
from prometheus.lint.recorded import learn
from prometheus.lint.sources import boards, pages, rule_files
from prometheus.lint.vocabulary import Vocabulary
from prometheus.lint.written import SourceError, Written

__all__ = ["SUFFIXES", "lint", "vocabulary"]

_SOURCES = {".yml": rule_files.read, ".yaml": rule_files.read, ".json": boards.read, ".md": pages.read}
SUFFIXES = tuple(_SOURCES)
"""Of the files that can hold expressions."""

_START = Position(line=1, column=1)
_NAMES = frozenset(check.name for check in CHECKS)


def vocabulary(fleet: Fleet, rules: Mapping[str, str]) -> Vocabulary:
    """Know what the exporter shows for a fleet and what rule files hold: {path: text}; raises SourceError."""
    written = [each for file, text in rules.items() for each in rule_files.read(file, text)]
    alerts = frozenset(each.rule.name for each in written if each.rule and each.rule.is_alert)
    return learn(replace(Vocabulary.of(fleet), alerts=alerts), written)


def lint(files: Mapping[str, str], known: Vocabulary) -> tuple[Problem, ...]:
    """Judge every expression in the files, {path: text}; what they record is known to all of them."""
    problems: list[Problem] = []
    written: list[Written] = []
    for file, text in files.items():
        try:
            written += _SOURCES[PurePath(file).suffix](file, text)
        except SourceError as error:
            problems.append(_problem(file, error.position, "file", str(error), error.fix))
    problems += _taken(written, known)
    known = learn(known, written)
    problems += [problem for each in written for problem in _judge(each, known)]
    return tuple(sorted(problems, key=lambda each: (each.file, each.position, each.rule)))


def _judge(written: Written, known: Vocabulary) -> Iterator[Problem]:
    for name in sorted(written.ignored - _NAMES):
        yield _problem(written.file, written.top, "ignore", f"no check is named {name}", f"one of: {_listed()}")
    try:
        root = read(written.text)
    except ExpressionError as error:
        yield _problem(written.file, written.place(0), "syntax", str(error), "see what promtool says of it")
        return
    expression = Expression(
        text=written.text,
        root=root,
        meanings=infer(root, known.meaning),
        vocabulary=known,
        use=written.use,
        rule=written.rule,
    )
    for check in CHECKS:
        if check.name in written.ignored:
            continue
        for found in check.find(expression):
            yield Problem(
                file=written.file,
                position=written.top if found.at is None else written.place(found.at),
                within=_START if found.at is None else Position.of(found.at, written.text),
                rule=check.name,
                severity=check.severity,
                message=found.message,
                fix=found.fix,
            )


def _taken(written: Iterable[Written], known: Vocabulary) -> Iterator[Problem]:
    for each in written:
        rule = each.rule
        if rule and rule.name in (known.alerts if rule.is_alert else known.series):
            what = "the end of one would resolve the other" if rule.is_alert else "two rules would write one series"
            message = f"{rule.name} is Servewatch's own: {what}"
            yield _problem(each.file, each.top, "taken-name", message, "choose another name")


def _problem(file: str, position: Position, rule: str, message: str, fix: str) -> Problem:
    return Problem(
        file=file, position=position, within=_START, rule=rule, severity=Severity.ERROR, message=message, fix=fix
    )


def _listed() -> str:
    return ", ".join(sorted(_NAMES))
