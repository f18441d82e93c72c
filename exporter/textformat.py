"""Text format: one line of a page in the text format 0.0.4 -> what it is, as Prometheus' reader sees it.

Grammar and verdicts follow model/textparse/promlex.l and promparse.go of Prometheus 2.42, including what they say about
NUL bytes: one where a line could begin ends the page.
"""

import re

from exporter.entry import Mark, Sample, is_utf8, merged, refusal, unescaped

__all__ = ["read"]

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_SPACE = re.compile(r"[ \t]*")
_BLANKS = re.compile(r"[ \t]+")
# NUL bytes are skipped where a label value is expected, and count as a part of it after its closing quote.
_EQUALS = r'([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=(?:[ \t][ \t\0]*)?"'
# Possessive, and many characters at once: an open quote before megabytes would hold up everybody for ten seconds.
_TEXT = r'(?:[^"\\]++|\\.)*+'
_LABEL = re.compile(rf'{_EQUALS}({_TEXT}"\0*)[ \t]*,?[ \t]*')
_OPEN_LABEL = re.compile(rf"{_EQUALS}{_TEXT}\\?\Z")
# Within a comment NUL bytes are skipped, but not after a keyword's name.
_KEYWORD = re.compile("#[ \t]+(H\0*E\0*L\0*P|T\0*Y\0*P\0*E)\0*[ \t][ \t\0]*")
_CUT_COMMENT = re.compile("#[ \t]+\0|#(?![ \t]).*\0")
_TYPES = frozenset({"counter", "gauge", "histogram", "summary", "untyped"})
_TIMESTAMP = re.compile(r"0*([0-9]{1,19})")
_LAST_TIMESTAMP = 2**63 - 1


def read(lines: list[str], index: int) -> Sample | Mark:
    """Read the line of that index, and the lines after it if a label value holds line breaks; raises ScrapeError."""
    line = lines[index]
    start = _end(_SPACE, line, 0)
    match line[start : start + 1]:
        case "":
            return Mark.COMMENT
        case "\0":
            return Mark.END
        case "#":
            return _comment(line[start:], index)
    if start:
        raise refusal(index, "expected no blank before a metric name", line)
    return _sample(lines, index)


def _comment(line: str, index: int) -> Mark:
    if "\0" in line and _CUT_COMMENT.match(line):
        return Mark.END
    keyword = _KEYWORD.match(line)
    if keyword is None:
        return Mark.COMMENT
    name = _NAME.match(line, keyword.end())
    if name is None:
        raise refusal(index, "expected a metric name after HELP or TYPE", line[keyword.end() :])
    separator, text = line[name.end() : name.end() + 1], line[name.end() + 1 :]
    if separator == "\0" or (not separator.isascii() and is_utf8(separator)):
        raise refusal(index, "expected a blank after the metric name", line[name.end() :])
    if keyword[1][0] == "T" and text not in _TYPES:
        raise refusal(index, f"expected one of {', '.join(sorted(_TYPES))}", text)
    if not is_utf8(text):
        raise refusal(index, "expected a help text in UTF-8", text)
    return Mark.COMMENT


def _sample(lines: list[str], index: int) -> Sample | Mark:
    text, name, pairs, position = _identity(lines, index)
    more_lines = text.count("\n")
    labels = merged(pairs)
    if labels is None:
        raise refusal(index, "expected each label once", text)
    rest = text[position:]
    value, *end = _BLANKS.split(rest.strip(" \t"))
    if "{" in value:
        raise refusal(index, "expected a value after the metric", rest)
    if end and not (len(end) == 1 and _is_timestamp(end[0])):
        raise refusal(index, "expected a timestamp or the end of the line after the value", rest)
    if not all(is_utf8(text) for _, text in pairs):
        value = ""
    alone = not more_lines and not end and text.endswith(f" {value}")
    beginning = text[: -len(value) - 1] if value and alone else ""
    return Sample(name=name, labels=labels, value=value, more_lines=more_lines, beginning=beginning)


def _identity(lines: list[str], index: int) -> tuple[str, str, list[tuple[str, str]], int]:
    """Read name and labels; answer the text of the sample, they, and where its value begins."""
    text = lines[index]
    name = _NAME.match(text)
    if name is None:
        raise refusal(index, "expected a metric name", text)
    pairs: list[tuple[str, str]] = []
    position = _end(_SPACE, text, name.end())
    if text[position : position + 1] == "{":
        position = _end(_SPACE, text, position + 1)
        while text[position : position + 1] != "}":
            text, label = _label(lines, index, text, position)
            pairs.append((label[1], unescaped(label[2][:-1])))
            position = label.end()
        position += 1
    end = text.find("\n", position)  # more lines may have been taken than the value holds
    return text if end < 0 else text[:end], name[0], pairs, position


def _label(lines: list[str], index: int, text: str, position: int) -> tuple[str, re.Match[str]]:
    """Read a label; answer the text with the lines after it that were needed to find the end of its value."""
    match = _LABEL.match(text, position)
    while match is None and _OPEN_LABEL.match(text, position):
        at = index + text.count("\n") + 1
        more = lines[at : 2 * at - index]  # twice as many each time, so that the time is linear in the value's size
        if not more:
            break
        text = "\n".join([text, *more])
        match = _LABEL.match(text, position)
    if match is None:
        raise refusal(index, 'expected a label such as name="value"', text[position:])
    return text, match


def _is_timestamp(text: str) -> bool:
    match = _TIMESTAMP.fullmatch(text)
    return match is not None and text.isascii() and int(match[1]) <= _LAST_TIMESTAMP


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position
