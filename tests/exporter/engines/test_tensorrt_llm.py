"""TensorRT-LLM's traps: no prefix at first, models called undefined, blocks for tokens, gauges that are no counters."""

import pytest

from exporter import catalogue
from exporter.engines import ENGINES
from exporter.normalise import recognise
from tests.exporter.engines.built import body, normalised, parsed, samples

TRTLLM = ENGINES["tensorrt-llm"]


def test_the_five_families_without_prefix_are_read() -> None:
    found = samples(body("trtllm-1.1-unprefixed"))
    assert found['llm_requests_finished_total{outcome="stop"}'] == 34
    assert found["llm_time_per_output_token_seconds_count"] == 39
    assert found["llm_request_duration_seconds_count"] == 39


@pytest.mark.parametrize("name", ["vllm-0.8.5", "sglang-0.4.1", "tgi-3.3.7"])
def test_names_without_prefix_beside_another_engines_are_not_taken_for_this_one(name: str) -> None:
    page = body(name) + body("trtllm-1.1-unprefixed")
    assert recognise(parsed(page)) is ENGINES[name.split("-", maxsplit=1)[0]]


@pytest.mark.parametrize(
    "name", ["request_success_total", "e2e_request_latency_seconds", "time_to_first_token_seconds"]
)
def test_one_familiar_name_alone_makes_no_page_this_engines(name: str) -> None:
    kept = "".join(f"{line}\n" for line in body("trtllm-1.1-unprefixed").splitlines() if line.startswith(name))
    assert recognise(parsed(kept)) is None


def test_a_model_called_undefined_is_unknown_and_the_models_endpoint_names_it() -> None:
    assert normalised(body("trtllm-1.3.0rc5")).model == ""
    assert TRTLLM.facts({"/v1/models": {"data": [{"id": "llama-3.3-70b"}]}}).model == "llama-3.3-70b"
    assert TRTLLM.facts({"/v1/models": {"data": [{"id": "a"}, {"id": "b"}]}}).model is None
    assert TRTLLM.facts({"/version": {"version": "1.3.0"}}).version == "1.3.0"


def test_capacity_is_blocks_times_tokens_per_block() -> None:
    assert samples(body("trtllm-1.3"))["llm_kv_cache_capacity_tokens"] == 2111 * 32


def test_capacity_is_absent_where_one_factor_is_and_never_a_number_of_blocks() -> None:
    page = body("trtllm-1.3").replace("kv_cache_tokens_per_block", "kv_cache_block_tokens")
    assert "llm_kv_cache_capacity_tokens" not in samples(page)


def test_a_page_without_iteration_statistics_has_no_load_and_misses_nothing() -> None:
    found = normalised(body("trtllm-1.3.0rc5"))
    assert catalogue.REQUESTS_RUNNING.name not in found.text
    assert found.missing == ()


def test_paused_requests_now_are_not_preemptions_so_far() -> None:
    assert "llm_preemptions_total" not in samples(body("trtllm-1.3"))


def test_timeouts_and_server_errors_add_up_to_errors_and_client_errors_do_not_count() -> None:
    found = samples(body("trtllm-1.3"))
    assert found['llm_requests_finished_total{outcome="error"}'] == 1 + 3
    assert found['llm_requests_finished_total{outcome="abort"}'] == 2
    assert found['llm_requests_rejected_total{reason="other"}'] == 11


def test_a_server_that_nobody_has_used_is_recognised_and_misses_nothing() -> None:
    found = normalised(body("trtllm-1.3-unused"))
    assert (found.recognised, found.missing, found.model) == (True, (), "llama-3.3-70b")


def test_a_renamed_first_token_histogram_is_missing_by_name() -> None:
    page = body("trtllm-1.3").replace("time_to_first_token", "time_to_first_output")
    assert normalised(page).missing == (catalogue.TTFT,)


def test_dynamos_spelling_of_the_prefix_is_read() -> None:
    page = body("trtllm-1.3").replace("trtllm_", "trtllm:")
    assert samples(page) == samples(body("trtllm-1.3"))
