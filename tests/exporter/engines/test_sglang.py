"""SGLang's traps: ranks that repeat each other, totals beside parts, old names beside new ones, negative counts."""

import pytest

from exporter import catalogue
from exporter.engines import ENGINES
from tests.exporter.engines.built import body, normalised, samples

SGLANG = ENGINES["sglang"]


def test_tensor_ranks_that_report_the_same_requests_are_not_added_up() -> None:
    page = """\
sglang:num_running_reqs{model_name="m",tp_rank="0",pp_rank="0"} 4
sglang:num_running_reqs{model_name="m",tp_rank="1",pp_rank="0"} 4
"""
    assert samples(page)["llm_requests_running"] == 4


def test_rank_10_does_not_come_before_rank_2() -> None:
    page = "".join(f'sglang:num_running_reqs{{tp_rank="{rank}"}} {rank}\n' for rank in (10, 2, 11))
    assert samples(page)["llm_requests_running"] == 2


def test_data_parallel_ranks_stay_apart_though_their_tensor_ranks_repeat_each_other() -> None:
    found = samples(body("sglang-0.5.23-dp2-tp4-all-schedulers"))
    assert found['llm_requests_running{rank="0"}'] == 7
    assert found['llm_requests_running{rank="1"}'] == 21
    assert found['llm_request_queue_seconds_count{rank="0"}'] == 39
    assert found['llm_request_queue_seconds_count{rank="1"}'] == 117


def test_all_is_as_with_one_worker_where_each_tensor_rank_repeats_it_and_priorities_split_it() -> None:
    """But for the requests, of which that page has more: the tokenizer books each under its own priority."""
    one, two = (samples(body(f"sglang-0.5.23{name}")) for name in ("", "-tp2-priorities"))
    workers = ("running", "waiting", "kv_cache", "preemptions", "prefix_cache", "request_queue", "request_prefill")
    names = [name for name in one if name.startswith(tuple(f"llm_{part}" for part in workers))]
    names += ["llm_requests_running", "llm_requests_waiting"]
    assert {name: one[name] for name in names} == {name: two[name] for name in names}


def test_a_queue_of_requests_with_priorities_is_its_total_not_total_and_parts() -> None:
    page = """\
sglang:num_queue_reqs{model_name="m",priority=""} 5
sglang:num_queue_reqs{model_name="m",priority="0"} 2
sglang:num_queue_reqs{model_name="m",priority="1"} 3
"""
    assert samples(page)["llm_requests_waiting"] == 5


def test_requests_of_every_priority_count() -> None:
    assert samples(body("sglang-0.5.23-tp2-priorities"))["llm_request_duration_seconds_count"] == 39 * (1 + 2 + 3 + 5)


def test_streaming_and_other_requests_are_added_up() -> None:
    found = samples(body("sglang-0.5.17"))
    assert found["llm_time_to_first_token_seconds_count"] == 40 * (1 + 2)
    assert found['llm_requests_finished_total{outcome="other"}'] == 39 * (1 + 2)


def test_both_names_of_the_inter_token_latency_at_once_are_read_once() -> None:
    assert samples(body("sglang-0.4.4"))["llm_inter_token_latency_seconds_count"] == 355


@pytest.mark.parametrize(
    ("name", "tokens"), {"sglang-0.5.3": 9059, "sglang-0.5.9": 9311, "sglang-0.5.23": 9311}.items()
)
def test_generated_tokens_are_live_where_the_engine_counts_them_live(name: str, tokens: int) -> None:
    assert samples(body(name))["llm_generation_tokens_total"] == tokens


@pytest.mark.parametrize(
    ("name", "queries", "hits"),
    [
        ("sglang-0.4.1", 53590, None),
        ("sglang-0.4.4", 53590, 10211),
        ("sglang-0.5.9", 43871 + 10413, 10413),
        ("sglang-0.5.23", 43873 + 10211 + 211, 10211 + 211),
    ],
)
def test_prefix_cache_is_read_from_the_best_counters_of_each_version(name: str, queries: int, hits: int | None) -> None:
    found = samples(body(name))
    assert found["llm_prefix_cache_query_tokens_total"] == queries
    assert found.get("llm_prefix_cache_hit_tokens_total") == hits


def test_cached_tokens_are_the_total_of_their_sources_not_twice_as_many() -> None:
    assert samples(body("sglang-0.5.9"))["llm_prompt_tokens_cached_total"] == 10211


def test_prefill_time_is_that_of_the_forward_stage_only() -> None:
    found = samples(body("sglang-0.5.3"))
    assert found["llm_request_prefill_seconds_count"] == 39
    assert found["llm_prefill_seconds_total"] == pytest.approx(29 * 0.12 + 9 * 0.9 + 2.2)


def test_errors_and_rejections_are_answers_to_requests_not_to_health_checks_or_scanners() -> None:
    found = samples(body("sglang-0.5.9"))
    assert found['llm_requests_finished_total{outcome="error"}'] == 2 + 1
    assert found['llm_requests_rejected_total{reason="queue_requests"}'] == 11


def test_gauges_of_one_process_each_are_not_taken_for_preemptions() -> None:
    assert "llm_preemptions_total" not in samples(body("sglang-0.5.3"))
    assert samples(body("sglang-0.5.9"))["llm_preemptions_total"] == 17


def test_a_queue_time_that_is_only_the_last_requests_is_no_histogram() -> None:
    assert not any(name.startswith("llm_request_queue") for name in samples(body("sglang-0.5.1")))


def test_a_histogram_with_negative_counts_is_left_out_and_counted_and_nothing_else_is_lost() -> None:
    end = ('inter_token_latency_seconds_bucket{le="+Inf"', "inter_token_latency_seconds_count")
    page = "".join(
        f"{line.rpartition(' ')[0]} -2.0\n" if line.startswith(tuple(f"sglang:{part}" for part in end)) else f"{line}\n"
        for line in body("sglang-0.5.1").splitlines()
    )
    found = normalised(page)
    assert catalogue.ITL.name not in found.text
    assert found.dropped == 23 + 1 + 2
    assert f"{catalogue.TTFT.count}{{" in found.text


def test_a_prefill_node_that_hands_requests_on_before_the_first_token_misses_none() -> None:
    page = "".join(
        line.replace('engine_type="unified"', 'engine_type="prefill"') + "\n"
        for line in body("sglang-0.5.23").splitlines()
        if "time_to_first_token" not in line
    )
    assert normalised(page).missing == ()
    assert normalised(page.replace("prefill", "decode")).missing == (catalogue.TTFT,)


def test_a_renamed_queue_gauge_is_missing_by_name() -> None:
    page = body("sglang-0.5.9").replace("num_queue_reqs", "num_waiting_reqs")
    found = normalised(page)
    assert found.missing == (catalogue.REQUESTS_WAITING,)
    assert set(found.unmapped) == {"num_waiting_reqs"}


def test_the_version_comes_from_the_path_that_the_version_has() -> None:
    assert SGLANG.facts({"/server_info": {"version": "0.5.23"}}).version == "0.5.23"
    assert SGLANG.facts({"/get_server_info": {"version": "0.4.4"}}).version == "0.4.4"
    assert SGLANG.facts({"/server_info": ["no", "object"]}).version is None
    newer, older = SGLANG.extras
    assert newer.when is None
    assert older.when is not None
    assert older.when({})
    assert not older.when({"/server_info": {}})


def test_names_whose_colon_was_rewritten_on_the_way_are_read() -> None:
    page = body("sglang-0.5.23")
    assert samples(page.replace("sglang:", "sglang_")) == samples(page)
