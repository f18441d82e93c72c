"""What makes a drill fail, told from what the phone got."""

from datetime import timedelta

import pytest

from drills.clients import Message
from drills.model import Expected
from drills.run import DrillFailedError, judge, judge_quiet

EXPECTED = Expected(alertname="LLMModelDown", model="qwen3-8b", within=timedelta(seconds=60))


def message(status: str, alertname: str = "LLMModelDown", model: str = "qwen3-8b") -> Message:
    return Message(status=status, alertname=alertname, model=model, summary="a sentence")


def test_one_page_that_resolves_passes() -> None:
    judge(EXPECTED, [message("firing"), message("resolved")])


@pytest.mark.parametrize(
    ("claim", "pages", "complaint"),
    [
        ("a page that never comes", [], "the phone got: []"),
        ("a page that never resolves", [message("firing")], "the phone got: ['firing']"),
        (
            "a doubled page",
            [message("firing"), message("firing"), message("resolved")],
            "the phone got: ['firing', 'firing', 'resolved']",
        ),
        (
            "another alert",
            [message("firing"), message("firing", "LLMAvailabilityBudgetBurn"), message("resolved")],
            "should have stayed quiet: LLMAvailabilityBudgetBurn",
        ),
        (
            "the same alert for another model",
            [message("firing"), message("firing", model="llama-3.2-3b"), message("resolved")],
            "should have stayed quiet: LLMModelDown llama-3.2-3b",
        ),
    ],
)
def test_a_drill_fails_on(claim: str, pages: list[Message], complaint: str) -> None:
    with pytest.raises(DrillFailedError) as failure:
        judge(EXPECTED, pages)
    assert complaint in str(failure.value), claim


def test_a_ticket_drill_passes_without_pages_and_fails_with_any() -> None:
    judge_quiet([])
    with pytest.raises(DrillFailedError, match="nothing should have paged: LLMModelDown qwen3-8b"):
        judge_quiet([message("firing")])
