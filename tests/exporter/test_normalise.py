"""From an engine's names to ours: renames, ranks, missing series, broken histograms, states told by the page."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from exporter import catalogue
from exporter.engines import ENGINES
from exporter.normalise import Normalised, Normaliser
from exporter.objectives import Objectives, Slos
from exporter.parse import Page, Parser
from exporter.selector import selector
from tests.exporter.captured import capture

UNDER_LOAD = capture("vllm-0.32.0/under-load").decode()


def normalised(page: str, engine: str = "vllm", model: str | None = None) -> Normalised:
    return Normaliser(Slos()).normalise(Parser().parse(page.encode()), ENGINES[engine], model)


def exposed(page: str, engine: str = "vllm", model: str | None = None) -> dict[str, float]:
    lines = normalised(page, engine, model).text.splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def renamed(old: str, new: str) -> str:
    return UNDER_LOAD.replace(f"vllm:{old}", f"vllm:{new}")


def without(name: str) -> str:
    return re.sub(rf"^vllm:{name}(_bucket|_sum|_count)?(\{{.*)? .*\n", "", UNDER_LOAD, flags=re.MULTILINE)


OLD_NAMES = {
    "kv_cache_usage_perc": ("gpu_cache_usage_perc", "llm_kv_cache_usage_ratio"),
    "prefix_cache_hits_total": ("gpu_prefix_cache_hits_total", "llm_prefix_cache_hit_tokens_total"),
    "prefix_cache_queries_total": ("gpu_prefix_cache_queries_total", "llm_prefix_cache_query_tokens_total"),
    "inter_token_latency_seconds": ("time_per_output_token_seconds", "llm_inter_token_latency_seconds_count"),
}


@pytest.mark.parametrize("name", OLD_NAMES)
def test_the_name_of_older_versions_is_read(name: str) -> None:
    old, ours = OLD_NAMES[name]
    page = re.sub(rf"vllm:(?<!external_){name}", f"vllm:{old}", UNDER_LOAD)
    assert exposed(page)[f'{ours}{{model="tiny"}}'] == exposed(UNDER_LOAD)[f'{ours}{{model="tiny"}}']
    assert normalised(page).missing == ()


def test_where_old_and_new_name_are_both_there_the_new_one_is_read_and_nothing_added_up() -> None:
    page = UNDER_LOAD + 'vllm:gpu_cache_usage_perc{engine="0",model_name="tiny"} 0.5\n'
    assert (
        exposed(page)['llm_kv_cache_usage_ratio{model="tiny"}']
        == exposed(UNDER_LOAD)['llm_kv_cache_usage_ratio{model="tiny"}']
    )


def test_a_series_that_no_known_name_provides_is_absent_not_zero_and_named() -> None:
    found = normalised(renamed("num_requests_running", "num_reqs_running"))
    assert found.missing == (catalogue.REQUESTS_RUNNING,)
    assert "llm_requests_running" not in found.text
    assert found.unmapped == ("num_reqs_running",)
    assert found.recognised


EXPECTED = (*ENGINES["vllm"].required, *ENGINES["vllm"].implied["cache_config_info"])


@pytest.mark.parametrize("metric", EXPECTED, ids=lambda metric: metric.name)
def test_every_required_metric_is_missed_when_it_is_gone(metric: catalogue.Metric) -> None:
    [reading] = [reading for reading in ENGINES["vllm"].readings if reading.metric is metric]
    page = UNDER_LOAD
    for name in reading.names:
        page = page.replace(f"vllm:{selector(name).name}", f"vllm:was_{selector(name).name}")
    found = normalised(page)
    assert metric in found.missing
    assert f"\n{metric.name}" not in found.text


def test_a_page_without_any_required_series_is_not_recognised() -> None:
    assert not normalised("vllm:something_else 1\n").recognised
    assert not normalised("http_requests_total 1\n").recognised


def test_what_came_with_a_later_version_is_missed_only_on_pages_of_that_version() -> None:
    page = without("request_time_per_output_token_seconds")
    assert normalised(page).missing == (catalogue.TPOT,)
    older = "".join(line for line in page.splitlines(keepends=True) if "engine_sleep_state" not in line)
    assert normalised(older).missing == ()


def test_a_rank_is_a_label_only_where_there_is_more_than_one() -> None:
    ranks = (
        'vllm:num_requests_running{engine="0",model_name="m"} 3\n'
        'vllm:num_requests_running{engine="1",model_name="m"} 5\n'
        'vllm:admission_rejections_total{model_name="m",reason="max_num_queued_reqs"} 2\n'
    )
    assert exposed(ranks) == {
        'llm_requests_running{model="m",rank="0"}': 3,
        'llm_requests_running{model="m",rank="1"}': 5,
        'llm_requests_rejected_total{model="m",reason="queue_requests"}': 2,
    }
    assert not any("rank" in name for name in exposed(UNDER_LOAD))


def test_processes_of_one_engine_are_one_series_with_the_largest_ratio() -> None:
    page = (
        'vllm:kv_cache_usage_perc{engine="0",model_name="m",pid="11"} 0\n'
        'vllm:kv_cache_usage_perc{engine="0",model_name="m",pid="12"} 0.75\n'
    )
    assert exposed(page) == {'llm_kv_cache_usage_ratio{model="m"}': 0.75}


def test_finish_reasons_that_we_do_not_know_are_other() -> None:
    page = "".join(
        f'vllm:request_success_total{{engine="0",finished_reason="{reason}",model_name="m"}} {count}\n'
        for reason, count in (("stop", 1), ("repetition", 2), ("newly_invented", 4))
    )
    assert exposed(page) == {
        'llm_requests_finished_total{model="m",outcome="stop"}': 1,
        'llm_requests_finished_total{model="m",outcome="other"}': 6,
    }


@pytest.mark.parametrize("prefix", ["vllm_", "ray_vllm_", "ray_vllm:", "kserve_vllm:"])
def test_names_that_were_rewritten_on_the_way_are_read(prefix: str) -> None:
    assert exposed(UNDER_LOAD.replace("vllm:", prefix)) == exposed(UNDER_LOAD)


CAPACITY = {
    'kv_cache_size_tokens="4096",num_gpu_blocks="9",block_size="16"': 4096.0,
    'kv_cache_size_tokens="None",num_gpu_blocks="100",block_size="16"': 1600.0,
    'num_gpu_blocks="100",block_size="16"': 1600.0,
    'num_gpu_blocks="None",block_size="16"': None,
    'block_size="16"': None,
}


@pytest.mark.parametrize("labels", CAPACITY)
def test_kv_cache_capacity_is_read_from_labels_where_they_are_numbers(labels: str) -> None:
    page = (
        f'vllm:num_requests_running{{engine="0",model_name="m"}} 0\nvllm:cache_config_info{{engine="0",{labels}}} 1\n'
    )
    assert exposed(page).get('llm_kv_cache_capacity_tokens{model="m"}') == CAPACITY[labels]


def test_a_series_without_the_models_label_gets_the_pages_model() -> None:
    assert exposed(UNDER_LOAD)['llm_kv_cache_capacity_tokens{model="tiny"}'] == 1048576


def test_a_configured_model_replaces_the_engines() -> None:
    assert set(exposed(UNDER_LOAD, model="ours")) == {
        name.replace('model="tiny"', 'model="ours"') for name in exposed(UNDER_LOAD)
    }


@pytest.mark.parametrize(("state", "asleep"), [("awake", False), ("weights_offloaded", True), ("discard_all", True)])
def test_a_sleeping_vllm_says_so(state: str, asleep: bool) -> None:  # noqa: FBT001 - a table
    page = UNDER_LOAD.replace('sleep_state="awake"} 1.0', 'sleep_state="awake"} 0.0')
    page = page.replace(f'sleep_state="{state}"}} 0.0', f'sleep_state="{state}"}} 1.0')
    assert normalised(page).sleeping is asleep


def test_custom_buckets_of_an_engine_become_the_canonical_ones() -> None:
    buckets = {"0.5": 10, "2.0": 30, "8.0": 40, "+Inf": 44}
    page = "".join(
        f'vllm:time_to_first_token_seconds_bucket{{model_name="m",le="{le}"}} {n}\n' for le, n in buckets.items()
    )
    page += 'vllm:time_to_first_token_seconds_count{model_name="m"} 44\n'
    page += 'vllm:time_to_first_token_seconds_sum{model_name="m"} 99\n'
    found = exposed(page)

    def at(bound: str) -> float:
        return found[f'llm_time_to_first_token_seconds_bucket{{model="m",le="{bound}"}}']

    assert (at("0.5"), at("2.0"), at("+Inf")) == (10, 30, 44)
    assert at("1.0") == pytest.approx(10 + 20 / 3)
    assert at("0.25") == 5
    assert (at("10.0"), at("2560.0")) == (40, 40), "nothing is known above 8 s"
    assert found['llm_slo_threshold_exact{model="m",slo="ttft"}'] == 1
    assert 'llm_slo_threshold_exact{model="m",slo="itl"}' not in found


def test_a_threshold_between_the_engines_bounds_is_not_exact() -> None:
    found = exposed(UNDER_LOAD)
    assert found['llm_slo_threshold_exact{model="tiny",slo="ttft"}'] == 0
    assert found['llm_slo_threshold_exact{model="tiny",slo="itl"}'] == 1


def exact(page: str, threshold: timedelta) -> dict[str, float]:
    """Answer what is said of the bounds of a page of model m, whose threshold for the first token differs."""
    latency = replace(Objectives().ttft, threshold=threshold)
    slos = Slos(models={"m": replace(Objectives(), ttft=latency)})
    text = Normaliser(slos).normalise(Parser().parse(page.encode()), ENGINES["vllm"], "m").text
    split = (line.rpartition(" ") for line in text.splitlines() if line.startswith("llm_slo_threshold_exact{"))
    return {series: float(value) for series, _, value in split}


@pytest.mark.parametrize(("milliseconds", "is_exact"), [(800, 0), (750, 1), (2500, 1), (2560, 0), (2_560_000, 1)])
def test_a_threshold_is_exact_where_the_engine_has_it_as_bound(milliseconds: int, is_exact: int) -> None:
    found = exact(UNDER_LOAD, timedelta(milliseconds=milliseconds))
    assert found == {
        'llm_slo_threshold_exact{model="m",slo="ttft"}': is_exact,
        'llm_slo_threshold_exact{model="m",slo="itl"}': 1,
    }


def test_a_threshold_is_exact_only_where_every_rank_has_it_as_bound() -> None:
    page = "".join(
        f'vllm:time_to_first_token_seconds_bucket{{engine="{rank}",le="{bound}"}} 1\n'
        f'vllm:time_to_first_token_seconds_bucket{{engine="{rank}",le="+Inf"}} 1\n'
        f'vllm:time_to_first_token_seconds_count{{engine="{rank}"}} 1\n'
        f'vllm:time_to_first_token_seconds_sum{{engine="{rank}"}} 1\n'
        for rank, bound in enumerate((1.5, 3))
    )
    for seconds in (1.5, 3):
        assert exact(page, timedelta(seconds=seconds)) == {'llm_slo_threshold_exact{model="m",slo="ttft"}': 0}
    assert exact(page.replace('"1.5"', '"3.0"'), timedelta(seconds=3)) == {
        'llm_slo_threshold_exact{model="m",slo="ttft"}': 1
    }


def test_nothing_is_said_of_thresholds_where_there_is_no_histogram() -> None:
    assert exact('vllm:num_requests_running{engine="0"} 1\n', timedelta(seconds=1)) == {}


def test_histograms_that_differ_in_labels_we_drop_are_added_up() -> None:
    parts = []
    for stream, counts in (("true", (1, 3)), ("false", (2, 5))):
        labels = f'model_name="m",is_streaming="{stream}"'
        parts.append(f'vllm:e2e_request_latency_seconds_bucket{{{labels},le="1.0"}} {counts[0]}\n')
        parts.append(f'vllm:e2e_request_latency_seconds_bucket{{{labels},le="+Inf"}} {counts[1]}\n')
        parts.append(f"vllm:e2e_request_latency_seconds_count{{{labels}}} {counts[1]}\n")
        parts.append(f"vllm:e2e_request_latency_seconds_sum{{{labels}}} 1.5\n")
    found = exposed("".join(parts))
    assert found['llm_request_duration_seconds_bucket{model="m",le="1.0"}'] == 3
    assert found['llm_request_duration_seconds_bucket{model="m",le="0.5"}'] == 1.5
    assert found['llm_request_duration_seconds_count{model="m"}'] == 8
    assert found['llm_request_duration_seconds_sum{model="m"}'] == 3


BROKEN = {
    "falling counts": (
        '_bucket{engine="0",le="2.5",model_name="tiny"} 111.0',
        '_bucket{engine="0",le="2.5",model_name="tiny"} 7.0',
    ),
    "a count that is no number": (
        '_bucket{engine="0",le="2.5",model_name="tiny"} 111.0',
        '_bucket{engine="0",le="2.5",model_name="tiny"} NaN',
    ),
    "a negative count": (
        '_bucket{engine="0",le="0.001",model_name="tiny"} 0.0',
        '_bucket{engine="0",le="0.001",model_name="tiny"} -1.0',
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_histogram_is_left_out_as_a_whole_and_counted(case: str) -> None:
    good, bad = (f"vllm:time_to_first_token_seconds{part}" for part in BROKEN[case])
    assert good in UNDER_LOAD
    found = normalised(UNDER_LOAD.replace(good, bad))
    assert "\nllm_time_to_first_token_seconds" not in found.text
    assert "\nllm_inter_token_latency_seconds_count" in found.text
    assert found.dropped == 25


@pytest.mark.parametrize("bound", ["abc", "", "NaN", "1e999"])
def test_a_bucket_without_a_bound_costs_itself_only(bound: str) -> None:
    found = exposed(UNDER_LOAD.replace('le="0.001"', f'le="{bound}"'))
    before = exposed(UNDER_LOAD)
    for name in ('_bucket{model="tiny",le="0.005"}', '_bucket{model="tiny",le="+Inf"}', '_count{model="tiny"}'):
        assert found[f"llm_time_to_first_token_seconds{name}"] == before[f"llm_time_to_first_token_seconds{name}"]


def test_a_histogram_without_infinity_ends_with_its_count() -> None:
    page = re.sub(r'^vllm:time_to_first_token_seconds_bucket.*le="\+Inf".*\n', "", UNDER_LOAD, flags=re.MULTILINE)
    assert exposed(page) == exposed(UNDER_LOAD)


def test_unknown_series_of_the_engine_are_counted_known_ones_that_we_leave_out_are_not() -> None:
    assert normalised(UNDER_LOAD).unmapped == ()
    page = UNDER_LOAD + 'vllm:brand_new_total{engine="0"} 1\nvllm:brand_new_created{engine="0"} 1\nhttp_brand_new 1\n'
    assert normalised(page).unmapped == ("brand_new_total",)


def test_cached_tokens_are_part_of_the_total_where_the_engine_leaves_them_out() -> None:
    found = exposed(capture("llama-server-b11434/after-load").decode(), "llama-server", "m")
    assert found['llm_prompt_tokens_total{model="m"}'] == 15292 + 36229
    assert found['llm_prefix_cache_query_tokens_total{model="m"}'] == 15292 + 36229


def test_an_older_llama_server_without_cached_tokens_has_no_prefix_cache_numbers() -> None:
    page = "\n".join(
        line for line in capture("llama-server-b11434/after-load").decode().splitlines() if "cached" not in line
    )
    found = exposed(page, "llama-server", "m")
    assert found['llm_prompt_tokens_total{model="m"}'] == 15292
    assert not any("prefix_cache" in name for name in found)


def test_plans_are_made_once_per_shape_and_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exporter.normalise._REMEMBERED", 3 * 2_100)
    parser, normaliser = Parser(), Normaliser(Slos())
    for index in range(10):
        page: Page = parser.parse(f'vllm:num_requests_running{{model_name="m{index}"}} 1\n'.encode())
        for _ in range(2):
            normaliser.normalise(page, ENGINES["vllm"], None)
        assert len(normaliser._plans) == min(index + 1, 3)
