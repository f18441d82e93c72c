"""What the exporter makes of every captured page, byte for byte, and numbers that a person read off the captures."""

import pytest

from tests.exporter.captured import GOLDEN, PAGES, exposed, golden


@pytest.mark.parametrize("name", PAGES)
def test_a_captured_page_is_exposed_as_in_its_golden_file(name: str) -> None:
    assert exposed(name) == golden(name).read_text(encoding="utf-8"), (
        "the page changed; if that is meant, run `python -m tests.exporter.captured` and review the difference"
    )


def test_every_golden_file_belongs_to_a_capture() -> None:
    assert {file.name for file in GOLDEN.iterdir()} == {golden(name).name for name in PAGES}


NUMBERS = {
    "vllm-0.32.0/under-load": (
        'llm_requests_running{model="tiny"} 8.0',
        'llm_requests_waiting{model="tiny"} 32.0',
        'llm_kv_cache_capacity_tokens{model="tiny"} 1048576.0',
        'llm_requests_finished_total{model="tiny",outcome="length"} 103.0',
        'llm_time_to_first_token_seconds_count{model="tiny"} 111.0',
        'llm_time_to_first_token_seconds_bucket{model="tiny",le="1.0"} 89.0',
        'llm_time_to_first_token_seconds_bucket{model="tiny",le="2.5"} 111.0',
        'llm_prompt_tokens_cached_total{model="tiny"} 13312.0',
    ),
    "vllm-0.32.0/multiprocess-preempting": (
        'llm_preemptions_total{model="org/tiny-7b"} 17.0',
        'llm_kv_cache_usage_ratio{model="org/tiny-7b"} 1.0',
        'llm_kv_cache_capacity_tokens{model="org/tiny-7b"} 1024.0',
        'llm_requests_waiting{model="org/tiny-7b"} 20.0',
    ),
    "vllm-0.32.0/spec-decode-after-load": (
        'llm_spec_decode_drafts_total{model="acme/draft-7b"} 98.0',
        'llm_spec_decode_accepted_tokens_total{model="acme/draft-7b"} 0.0',
        'llm_generation_tokens_total{model="acme/draft-7b"} 3943.0',
    ),
    "llama-server-b11434/under-load": (
        'llm_requests_running{model="tiny.gguf"} 4.0',
        'llm_requests_waiting{model="tiny.gguf"} 15.0',
        'llm_prompt_tokens_total{model="tiny.gguf"} 15916.0',  # 5526 computed and 10390 cached
        'llm_prompt_tokens_cached_total{model="tiny.gguf"} 10390.0',
        'llm_kv_cache_capacity_tokens{model="tiny.gguf"} 8192.0',
        'llm_request_slots{model="tiny.gguf"} 4.0',
    ),
    "llama-server-b11434/sleeping": (
        'llm_replica_state{model="tiny.gguf",state="sleeping"} 1.0',
        'llm_replica_state{model="tiny.gguf",state="ready"} 0.0',
        'llm_replica_up{model="tiny.gguf"} 1.0',
    ),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_those_of_the_captured_page(name: str) -> None:
    lines = exposed(name).splitlines()
    assert [line for line in NUMBERS[name] if line not in lines] == []


def test_an_engine_that_has_no_latency_histogram_exposes_none() -> None:
    assert "_bucket" not in exposed("llama-server-b11434/under-load")


def test_gauges_that_every_reader_resets_are_never_read() -> None:
    assert "14013.5" not in exposed("llama-server-b11434/after-load")


def test_created_companions_are_not_taken_for_measurements() -> None:
    assert "_created" not in exposed("vllm-0.32.0/under-load")
    assert "1.79596674686" not in exposed("vllm-0.32.0/under-load")
