"""The pages have the shape of the captured ones: same families, types, labels, buckets and order."""

import re
from pathlib import Path

import pytest

from simulator.config import Fleet, Model, load_fleet
from simulator.llama_server_page import LlamaServerPage
from simulator.sequence import Finished, Gauges, Outcome, Rejection, Request, Sequence, StepReport, Token
from simulator.vllm_page import VllmPage, one_two_five

CAPTURES = Path("tests/fixtures/captures")
VLLM = (CAPTURES / "vllm-0.32.0/under-load.prom").read_text()
LLAMA = (CAPTURES / "llama-server-b11434/under-load.prom").read_text()
CHAT = "/v1/chat/completions"


def shape(page: str) -> list[str]:
    """Strip values and what belongs to one deployment: model name, interpreter, cache sizes."""
    lines = []
    for line in page.splitlines():
        if line.startswith("#"):
            lines.append(line)
            continue
        series = line.rpartition(" ")[0]
        series = re.sub(r'model_name="[^"]*"', 'model_name=""', series)
        if series.startswith(("python_info", "vllm:cache_config_info")):
            series = re.sub(r'="[^"]*"', '=""', series)
        lines.append(series)
    return lines


def value(page: str, series: str) -> str:
    [found] = [line.rpartition(" ")[2] for line in page.splitlines() if line.rpartition(" ")[0] == series]
    return found


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return load_fleet(Path("simulator/demo.yml"))


@pytest.fixture
def qwen(fleet: Fleet) -> Model:
    return fleet.replicas[0].model


@pytest.fixture
def llama(fleet: Fleet) -> Model:
    return fleet.replicas[3].model


def answered(*, tokens: int = 3, cached: int = 16) -> Sequence:
    request = Request(request_id="1", prompt_tokens=40, answer_tokens=tokens, max_tokens=99)
    return Sequence(
        request=request,
        arrived=100.0,
        scheduled_at=100.5,
        first_token_at=101.0,
        last_token_at=101.2,
        computed=42,
        generated=tokens,
        cached_tokens=cached,
    )


def report(sequence: Sequence, *, finished: bool = True) -> StepReport:
    return StepReport(
        at=101.0,
        computed_prompt_tokens=24,
        scheduled_sequences=1,
        tokens=(Token(sequence=sequence, index=1, gap=None), Token(sequence=sequence, index=2, gap=0.1)),
        finished=(Finished(sequence=sequence, outcome=Outcome.STOP, at=101.2),) if finished else (),
        admitted=(sequence,),
        preemptions=2,
        gauges=Gauges(running=5, waiting=6, kv_usage=0.25),
    )


def vllm_text(page: VllmPage) -> str:
    return page.render("text/plain", Gauges())[0].decode()


def llama_text(page: LlamaServerPage, now: Gauges | None = None) -> str:
    return page.render("", now or Gauges())[0].decode()


def test_the_vllm_page_has_the_shape_of_the_captured_one(qwen: Model) -> None:
    page = VllmPage(qwen, started_at=1.0)
    page.answered(CHAT, 200, 0.3, 100)
    assert shape(vllm_text(page)) == shape(VLLM)


def test_the_llama_server_page_has_the_shape_of_the_captured_one(llama: Model) -> None:
    assert shape(llama_text(LlamaServerPage(llama, started_at=1.0))) == shape(LLAMA)


def test_a_vllm_reader_that_asks_for_openmetrics_gets_it(qwen: Model) -> None:
    body, content_type = VllmPage(qwen, started_at=1.0).render("application/openmetrics-text; version=1.0.0", Gauges())
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")


def test_a_finished_request_is_booked_in_every_vllm_family(qwen: Model) -> None:
    page = VllmPage(qwen, started_at=1.0)
    page.record(report(answered()))
    text = vllm_text(page)
    labels = '{engine="0",model_name="qwen3-8b"}'
    expected = {
        f"vllm:time_to_first_token_seconds_sum{labels}": "1.0",
        f"vllm:inter_token_latency_seconds_sum{labels}": "0.1",
        f"vllm:request_queue_time_seconds_sum{labels}": "0.5",
        f"vllm:request_prefill_time_seconds_sum{labels}": "0.5",
        f"vllm:prompt_tokens_total{labels}": "40.0",
        f"vllm:prompt_tokens_cached_total{labels}": "16.0",
        f"vllm:prefix_cache_queries_total{labels}": "40.0",
        f"vllm:prefix_cache_hits_total{labels}": "16.0",
        f"vllm:generation_tokens_total{labels}": "2.0",
        f"vllm:num_preemptions_total{labels}": "2.0",
        f"vllm:num_requests_running{labels}": "5.0",
        f"vllm:num_requests_waiting{labels}": "6.0",
        f"vllm:kv_cache_usage_perc{labels}": "0.25",
        'vllm:request_success_total{engine="0",finished_reason="stop",model_name="qwen3-8b"}': "1.0",
    }
    assert {series: value(text, series) for series in expected} == expected


def test_an_aborted_request_reaches_the_tokens_but_not_the_finished_ones(qwen: Model) -> None:
    page = VllmPage(qwen, started_at=1.0)
    page.record(report(answered(), finished=False))
    text = vllm_text(page)
    assert value(text, 'vllm:time_to_first_token_seconds_count{engine="0",model_name="qwen3-8b"}') == "1.0"
    assert value(text, 'vllm:e2e_request_latency_seconds_count{engine="0",model_name="qwen3-8b"}') == "0.0"
    aborted = 'vllm:request_success_total{engine="0",finished_reason="abort",model_name="qwen3-8b"}'
    assert value(text, aborted) == "0.0"


def test_a_rejection_has_no_engine_label(qwen: Model) -> None:
    page = VllmPage(qwen, started_at=1.0)
    page.rejected(Rejection.QUEUED_REQUESTS)
    series = 'vllm:admission_rejections_total{model_name="qwen3-8b",reason="max_num_queued_reqs"}'
    assert value(vllm_text(page), series) == "1.0"


def test_the_start_time_is_the_replicas_own(qwen: Model) -> None:
    assert value(vllm_text(VllmPage(qwen, started_at=11.5)), "process_start_time_seconds") == "11.5"


@pytest.mark.parametrize(
    ("largest", "last"),
    [(2048, 2000), (4096, 2000), (5000, 5000), (131072, 100000), (1, 1)],
)
def test_token_buckets_end_at_the_longest_request(largest: int, last: int) -> None:
    assert one_two_five(largest)[-1] == last


def test_llama_server_prints_six_significant_digits(llama: Model) -> None:
    page = LlamaServerPage(llama, started_at=1.0)
    step = report(answered(), finished=False)
    page.record(
        StepReport(
            at=step.at,
            computed_prompt_tokens=1734567,
            scheduled_sequences=1,
            tokens=(),
            finished=(),
            admitted=(),
            preemptions=0,
        )
    )
    assert value(llama_text(page), "llamacpp:prompt_tokens_total") == "1.73457e+06"


def test_llama_server_books_tokens_when_the_slot_is_released(llama: Model) -> None:
    page = LlamaServerPage(llama, started_at=1.0)
    page.record(report(answered(tokens=11), finished=False))
    assert value(llama_text(page), "llamacpp:tokens_predicted_total") == "0"
    page.record(report(answered(tokens=11)))
    assert value(llama_text(page), "llamacpp:tokens_predicted_total") == "11"


def test_llama_server_counts_cached_tokens_apart(llama: Model) -> None:
    page = LlamaServerPage(llama, started_at=1.0)
    page.record(report(answered(cached=16)))
    assert value(llama_text(page), "llamacpp:prompt_tokens_total") == "24"
    assert value(llama_text(page), "llamacpp:prompt_tokens_cached_total") == "16"


def test_reading_resets_the_throughput_gauges_for_everybody(llama: Model) -> None:
    page = LlamaServerPage(llama, started_at=1.0)
    page.record(report(answered(tokens=11)))
    first, second = llama_text(page), llama_text(page)
    assert value(first, "llamacpp:prompt_tokens_seconds") == "48"
    assert value(second, "llamacpp:prompt_tokens_seconds") == "0"
    assert value(second, "llamacpp:prompt_tokens_total") == "24"


def test_llama_server_shows_its_slots_as_they_are_now(llama: Model) -> None:
    text = llama_text(LlamaServerPage(llama, started_at=1.0), Gauges(running=4, waiting=15))
    assert value(text, "llamacpp:requests_processing") == "4"
    assert value(text, "llamacpp:requests_deferred") == "15"
