"""OpenMetrics: one line of such a page -> what it is, as Prometheus' reader sees it.

Grammar and verdicts follow model/textparse/openmetricslex.l and openmetricsparse.go of Prometheus. They are stricter
than those of the text format: one blank where there has to be one, no empty lines, no free comments, # EOF at the end.
Taken as in 3.x, though 2.42 refuses them: an exemplar after any sample, and a comma after the last label.
"""

import re
from math import isfinite

from exporter.entry import Mark, Sample, is_utf8, merged, refusal, unescaped
from exporter.failures import Reason, ScrapeError
from exporter.numbers import number

__all__ = ["lines_before_end", "read"]

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
# NUL bytes count as a part of a label value after its closing quote.
_LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]++|\\[^\n])*+"\0*)'
_LABELS = re.compile(rf"\{{(?:{_LABEL}(?:,|(?=\}})))*+\}}")
_PAIR = re.compile(_LABEL)
_SERIES = re.compile(_NAME)
# Within a comment NUL bytes are skipped, but not right after the name.
_META = re.compile(rf"# (H\0*E\0*L\0*P|T\0*Y\0*P\0*E|U\0*N\0*I\0*T)\0* \0*({_NAME}) (.*)", re.DOTALL)
_END = re.compile("# E\0*O\0*F")
_TYPES = frozenset(
    {"counter", "gauge", "histogram", "summary", "unknown", "gaugehistogram", "stateset", "info"},
)
_VALUE = re.compile(r" ([^ ]+)(?: ([^ ]+))?(?= # \{|\Z)")
_EXEMPLAR_VALUE = re.compile(r" ([^ ]+)(?: ([^ ]+))?\Z")
_EXEMPLAR = " # "


def lines_before_end(text: str) -> list[str]:
    """Answer the lines before the # EOF that has to end a page; raises ScrapeError where it is missing."""
    lines = text.removesuffix("\n").split("\n")
    if "\n\0" in text:
        _skip_nul_bytes(lines)
    if not _END.fullmatch(lines.pop()):
        raise ScrapeError(Reason.PARSE, "an OpenMetrics page must end with # EOF; it was cut, or is mislabelled")
    return lines


def read(lines: list[str], index: int) -> Sample | Mark:
    """Read the line of that index; raises ScrapeError."""
    line = lines[index]
    if line.startswith("#"):
        _check_metadata(line, index)
        return Mark.COMMENT
    return _sample(line, index)


def _skip_nul_bytes(lines: list[str]) -> None:
    """Take away the NUL bytes right after a help text and its line end, which Prometheus skips."""
    for index in range(1, len(lines)):
        before = _META.fullmatch(lines[index - 1])
        if before is not None and before[1][0] == "H":
            lines[index] = lines[index].lstrip("\0")


def _check_metadata(line: str, index: int) -> None:
    match = _META.fullmatch(line)
    if match is None:
        raise refusal(index, "expected # HELP, # TYPE or # UNIT with a metric name and a text", line)
    keyword, name, text = match.groups()
    if keyword[0] == "T" and text not in _TYPES:
        raise refusal(index, f"expected one of {', '.join(sorted(_TYPES))}", text)
    if keyword[0] == "U" and text and not name.endswith(f"_{text}"):
        raise refusal(index, f"expected a unit that {name} ends with", text)
    if keyword[0] == "H" and not is_utf8(text):
        raise refusal(index, "expected a help text in UTF-8", text)


def _sample(line: str, index: int) -> Sample | Mark:
    name = _SERIES.match(line)
    if name is None:
        raise refusal(index, "expected a metric name", line)
    pairs, position = _label_pairs(line, name.end(), index)
    labels = merged(pairs)
    if labels is None:
        raise refusal(index, "expected each label once", line)
    rest = line[position:]
    if rest in {"", " "}:
        return Mark.UNUSABLE
    match = _VALUE.match(rest)
    if match is None or (match[2] is not None and not _is_time(match[2])):
        raise refusal(index, "expected one blank, a value, and perhaps one blank and a timestamp", rest)
    if match.end() < len(rest):
        _check_exemplar(rest, match.end() + len(_EXEMPLAR), index)
    if not all(is_utf8(value) for _, value in pairs):
        return Mark.UNUSABLE
    beginning = line[:position] if match.end() == len(rest) and match[2] is None else ""
    return Sample(name=name[0], labels=labels, value=match[1], beginning=beginning)


def _label_pairs(line: str, position: int, index: int) -> tuple[list[tuple[str, str]], int]:
    """Read labels in braces, if there are any; answer them and where they end."""
    if line[position : position + 1] != "{":
        return [], position
    labels = _LABELS.match(line, position)
    if labels is None:
        raise refusal(index, 'expected labels such as {name="value"} without blanks between them', line[position:])
    return [(key, unescaped(value[:-1])) for key, value in _PAIR.findall(labels[0])], labels.end()


def _check_exemplar(rest: str, position: int, index: int) -> None:
    pairs, end = _label_pairs(rest, position, index)
    match = _EXEMPLAR_VALUE.match(rest, end)
    usable = (
        "\0" not in rest[position:end]
        and match is not None
        and number(match[1]) is not None
        and (match[2] is None or _is_time(match[2]))
    )
    if not usable or not all(is_utf8(value) for _, value in pairs):
        raise refusal(index, 'expected an exemplar such as # {name="value"} 1', rest[position:])


def _is_time(text: str) -> bool:
    seconds = number(text)
    return seconds is not None and isfinite(seconds)
