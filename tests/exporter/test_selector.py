"""Selectors mean what the same text means in PromQL."""

import pytest

from exporter.selector import selector

MEANT: dict[str, tuple[str, dict[str, str], bool]] = {
    "a name alone takes every series": ("a", {"x": "1"}, True),
    "an equal value is taken": ('a{x="1"}', {"x": "1", "y": "2"}, True),
    "another value is not": ('a{x="1"}', {"x": "2"}, False),
    "an empty value means that the label is absent": ('a{x=""}', {"y": "1"}, True),
    "a regex matches the whole value": ('a{x=~"1|2"}', {"x": "12"}, False),
    "a regex with an empty branch takes a series without the label": ('a{x=~"|total"}', {}, True),
    "dots are regex only after a tilde": ('a{x="5.."}', {"x": "503"}, False),
    "unequal takes what differs": ('a{x!="1"}', {}, True),
    "unequal leaves what does not": ('a{x!="1"}', {"x": "1"}, False),
    "a negated regex": ('a{x!~"5.."}', {"x": "503"}, False),
    "all matchers must hold": ('a{x="1",y="2"}', {"x": "1", "y": "3"}, False),
    "a comma inside a value separates nothing": ('a{x="1,y"}', {"x": "1,y"}, True),
}


@pytest.mark.parametrize("claim", MEANT)
def test_selectors(claim: str) -> None:
    text, labels, taken = MEANT[claim]
    assert selector(text).takes(labels) is taken


@pytest.mark.parametrize("text", ["", "{}", "a{", "a{}", "a{x}", 'a{x="1"', "a{x=1}", 'a{x=="1"}', 'a{x="1" y="2"}'])
def test_what_is_no_selector_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(ValueError, match="expected name or name"):
        selector(text)
