"""Reading: the parser takes and refuses what every promtool does, and every node knows its place."""

import subprocess
from pathlib import Path

import pytest
import yaml

from prometheus.lint.reading import ExpressionError, read
from prometheus.lint.tree import Aggregate, Binary, Call, Negation, Node, Number, Selector, Text, walk
from running import tools

GOOD = (
    "x",
    "sum by (a, b) (rate(x[5m] offset 1h))",
    "sum(rate(x[5m])) by (a)",
    "x @ start()",
    "x offset -5m - y",
    "x[5m:30s]",
    'x{a="b",c=~"d|e",f!~"g.*",}',
    "x{a='b'} or x{a=`b`}",
    '{__name__="x"}',
    "a / on (b) group_left (c) d",
    "a and ignoring (b) c unless d",
    "1 + 2 * 3 ^ 2",
    "a == bool 1",
    "-x",
    "0x1f + 1e3 + .5 + Inf",
    "topk(3, x) or quantile(0.9, x) or count_values('v', x)",
    "histogram_quantile(0.9, sum by (le) (rate(x_bucket[5m])))",
    "label_replace(x, 'a', '$1', 'b', '(.*)')",
    "# a comment\nx",
    "max_over_time(rate(x[5m])[1h:1m])",
    "time() - timestamp(x)",
    "vector(0)",
    "scalar(x) * y",
    "a atan2 b",
)
BAD = (
    "",
    "x{",
    "sum(x",
    "rate(x)",
    "rate(x[5m]",
    "rate(x[5])[",
    "x[5m] + 1",
    "x[5m] offset",
    "sum by (x",
    "nonsense(x)",
    "{}",
    '{a=~".*"}',
    'x{a=~"["}',
    "x{a=b}",
    "1 and x",
    "a / on (b) group_left (b) c",
    "a and group_left () b",
    "1 > 2",
    "x == bool",
    "histogram_quantile(x)",
    "'text' + 1",
    "x y",
    "sum(x,)",
    "a / bool b",
)


def _verdicts(directory: Path, promtool: tools.Tool, expressions: tuple[str, ...]) -> dict[str, bool]:
    verdicts = {}
    for number, expr in enumerate(expressions):
        file = directory / f"{number}.yml"
        rule = {"record": "a:b:c", "expr": expr}
        file.write_text(yaml.safe_dump({"groups": [{"name": "g", "rules": [rule]}]}), encoding="utf-8")
        check = subprocess.run([promtool.path, "check", "rules", file], capture_output=True, check=False)
        verdicts[expr] = check.returncode == 0
    return verdicts


def _parses(expr: str) -> bool:
    try:
        read(expr)
    except ExpressionError:
        return False
    return True


def test_the_parser_agrees_with_every_promtool(tmp_path: Path) -> None:
    promtools = tools.all_versions("promtool")
    assert promtools, tools.missing("promtool")
    ours = {expr: _parses(expr) for expr in (*GOOD, *BAD)}
    assert ours == {**dict.fromkeys(GOOD, True), **dict.fromkeys(BAD, False)}
    for promtool in promtools:
        assert _verdicts(tmp_path, promtool, (*GOOD, *BAD)) == ours, str(promtool)


WORDS = {
    "sum by (rate) (rate(rate[5m]))": ["sum", "rate(r", "rate["],
    'x{a="x", b="}"} + on (y) group_left (z) y{z!=""}': ["+", "x{", "y{"],
    "a - b offset -5m - c": ["- c", "- b", "a", "b", "c"],
    'label_replace(a, "b", "$1", "c", "(a)")': ["label", "a,", '"b"', '"$1"', '"c"', '"(a)"'],
    "# sum(x)\nsum(x) # x\n > 5m": ["> 5m", "sum(x) #", "x) #", "5m"],
    '{a="b"} or {__name__="c", d="e"}': ["or", '{a="b"}', "{__"],
    "count_values('v', x) / 0x1f": ["/", "count", "'v'", "x)", "0x1f"],
    "-x AND y": ["AND", "-x", "x", "y"],
    "TOPK(3, x)": ["TOPK", "3", "x)"],
    "max_over_time(x[5m:30s]) == bool Inf": ["==", "max_", "x[", "x[", "Inf"],
}


@pytest.mark.parametrize("text", WORDS)
def test_every_node_knows_where_it_stands(text: str) -> None:
    found = [text[node.at :] for node in walk(read(text))]
    assert len(found) == len(WORDS[text])
    for rest, word in zip(found, WORDS[text], strict=True):
        assert rest.startswith(word)


def test_conditions_know_where_they_stand() -> None:
    text = 'sum(x{a="b=1",\n  c=~`d`,e!="f"})'
    [selector] = [node for node in walk(read(text)) if isinstance(node, Selector)]
    assert [text[each.at] for each in selector.conditions] == ["a", "c", "e"]
    assert [(each.operator, each.value) for each in selector.conditions] == [("=", "b=1"), ("=~", "d"), ("!=", "f")]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("x", Selector),
        ("rate(x[5m])", Call),
        ("sum(x)", Aggregate),
        ("x + 1", Binary),
        ("-x", Negation),
        ("((1))", Number),
        ("'a'", Text),
    ],
)
def test_parentheses_leave_no_trace(text: str, kind: type[Node]) -> None:
    assert type(read(text)) is kind
    assert type(read(f"({text})")) is kind


@pytest.mark.parametrize("levels", [301, 1600])
def test_an_expression_too_deep_to_be_judged_is_refused_in_words(levels: int) -> None:
    with pytest.raises(ExpressionError, match="more than 300 operators and calls around each other"):
        read("sum(" * levels + "llm_replica_up" + ")" * levels)


@pytest.mark.parametrize("text", [" or ".join(["up"] * 5000), "(" * 10_000 + "up" + ")" * 10_000, "-" * 10_000 + "up"])
def test_an_expression_too_long_for_the_parser_is_refused_before_it_dies(text: str) -> None:
    with pytest.raises(ExpressionError, match="more than 5000 words and signs"):
        read(text)


def test_an_expression_as_deep_as_hundreds_of_models_make_it_is_read() -> None:
    assert read(" or ".join(["llm_replica_up"] * 300))
