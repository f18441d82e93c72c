"""vLLM's generations, 0.8.5 to 0.33: both names at once, ranks, processes, LoRA, sleep, Ray, Rust."""

import pytest

from exporter import catalogue
from tests.exporter.engines.built import body, normalised, samples


@pytest.mark.parametrize("name", ["vllm-0.9.2", "vllm-0.10.2"])
def test_old_and_new_names_at_once_are_read_once(name: str) -> None:
    found = samples(body(name))
    assert found["llm_kv_cache_usage_ratio"] == 0.4219
    assert found["llm_prefix_cache_query_tokens_total"] == 53590
    assert found["llm_prefix_cache_hit_tokens_total"] == 10711
    assert found["llm_inter_token_latency_seconds_count"] == 355


def test_the_new_name_wins_over_the_old_one() -> None:
    old = 'vllm:gpu_cache_usage_perc{engine="0",model_name="qwen3-8b"}'
    page = body("vllm-0.10.2").replace(f"{old} 0.4219", f"{old} 0.9")
    assert samples(page)["llm_kv_cache_usage_ratio"] == 0.4219


def test_an_old_name_is_read_where_it_is_alone() -> None:
    found = samples(body("vllm-0.8.5"))
    assert found["llm_kv_cache_usage_ratio"] == 0.4219
    assert found["llm_inter_token_latency_seconds_count"] == 355


def test_the_old_name_of_the_inter_token_latency_is_not_taken_for_time_per_output_token() -> None:
    assert not any(name.startswith(catalogue.TPOT.name) for name in samples(body("vllm-0.8.5")))


def test_kv_cache_use_of_several_processes_is_the_largest_of_each_rank() -> None:
    found = samples(body("vllm-0.11.0-dp2-pid"))
    assert found['llm_kv_cache_usage_ratio{rank="0"}'] == 0.4219
    assert found['llm_kv_cache_usage_ratio{rank="1"}'] == 0.1357


def test_ranks_stay_apart_and_one_rank_alone_is_no_label() -> None:
    assert samples(body("vllm-0.24.0-dp2-lora"))['llm_requests_waiting{rank="1"}'] == 2
    assert samples(body("vllm-0.12.0-sleeping"))["llm_requests_waiting"] == 11


def test_capacity_of_each_rank_comes_from_labels_in_blocks_or_in_tokens() -> None:
    assert samples(body("vllm-0.11.0-dp2-pid"))['llm_kv_cache_capacity_tokens{rank="1"}'] == 4212 * 16
    assert samples(body("vllm-0.24.0-dp2-lora"))['llm_kv_cache_capacity_tokens{rank="1"}'] == 67392


def test_a_rejection_has_no_rank_and_still_counts_for_the_model() -> None:
    both = body("vllm-0.24.0-dp2-lora") + 'vllm:admission_rejections_total{model_name="m",reason="queue_full"} 13.0\n'
    assert samples(both)['llm_requests_rejected_total{reason="other"}'] == 13
    found = samples(body("vllm-0.32.0-custom-buckets"))
    assert found['llm_requests_rejected_total{reason="queue_requests"}'] == 17
    assert found['llm_requests_rejected_total{reason="queue_tokens"}'] == 3


def test_lora_timestamps_are_measurements_of_nothing() -> None:
    assert "17959668" not in normalised(body("vllm-0.24.0-dp2-lora")).text


def test_an_engine_whose_weights_are_offloaded_sleeps() -> None:
    asleep = body("vllm-0.12.0-sleeping")
    assert normalised(asleep).sleeping
    awake = asleep.replace('"weights_offloaded"} 1.0', '"weights_offloaded"} 0.0').replace(
        '"awake"} 0.0', '"awake"} 1.0'
    )
    assert not normalised(awake).sleeping


def test_the_rust_frontends_openmetrics_page_is_read_as_the_classic_one() -> None:
    found = samples(body("vllm-0.33.0-rust-frontend"))
    assert found["llm_generation_tokens_total"] == 1234567
    assert found['llm_requests_finished_total{outcome="stop"}'] == 31
    assert found["llm_request_prompt_tokens_count"] == 39


def test_what_the_rust_frontend_cannot_tell_is_absent_and_not_missing() -> None:
    found = normalised(body("vllm-0.33.0-rust-frontend"))
    assert found.missing == ()
    assert catalogue.KV_CACHE_CAPACITY.name not in found.text
    assert catalogue.PREEMPTIONS.name not in found.text


def test_a_rust_frontend_that_has_not_finished_a_request_misses_nothing() -> None:
    begins = ("num_requests_", "kv_cache_usage_perc", "prompt_tokens_total", "time_to_first_token_seconds", "# EOF")
    page = "".join(
        line
        for line in body("vllm-0.33.0-rust-frontend").splitlines(keepends=True)
        if line.removeprefix("vllm:").startswith(begins)
    )
    found = normalised(page)
    assert (found.recognised, found.missing) == (True, ())
    assert "llm_time_to_first_token_seconds_count" in found.text


def test_a_rust_frontend_that_finished_a_request_misses_what_was_renamed() -> None:
    page = body("vllm-0.33.0-rust-frontend").replace("inter_token_latency_seconds", "itl_seconds")
    assert normalised(page).missing == (catalogue.ITL,)


def test_what_the_production_stacks_router_believes_of_engines_is_no_engines_page() -> None:
    page = (
        'vllm:num_requests_running{server="http://h:1"} 3\n'
        'vllm:num_requests_waiting{server="http://h:1"} 0\n'
        'vllm:healthy_pods_total{server="http://h:1"} 1\n'
        'vllm:input_tokens_total{model="m",server="http://h:1"} 9\n'
    )
    found = normalised(page)
    assert not found.recognised
    assert "llm_requests_running" not in found.text


def test_a_python_frontend_that_loses_its_preemptions_misses_them() -> None:
    page = body("vllm-0.24.0-dp2-lora").replace("num_preemptions_total", "preempted_total")
    assert normalised(page).missing == (catalogue.PREEMPTIONS,)


def test_rays_spelling_is_read_with_its_labels_left_behind() -> None:
    found = normalised(body("vllm-0.20.0-ray"))
    assert found.model == "qwen3-8b"
    assert "ReplicaId" not in found.text
    assert samples(body("vllm-0.20.0-ray"))["llm_requests_running"] == 3


def test_custom_bounds_are_read_from_the_page() -> None:
    found = samples(body("vllm-0.32.0-custom-buckets"))
    assert found['llm_time_to_first_token_seconds_bucket{le="2.0"}'] == 36
    assert found['llm_slo_threshold_exact{slo="ttft"}'] == 1
    assert samples(body("vllm-0.24.0-dp2-lora"))['llm_slo_threshold_exact{slo="ttft"}'] == 0


def test_the_first_engines_queue_time_is_read_under_its_own_name() -> None:
    page = "".join(f"{line}\n" for line in body("vllm-0.8.5-v0").splitlines() if "request_queue_time" not in line)
    assert samples(page)["llm_request_queue_seconds_count"] == 39
