"""TGI's traps: no first-token time, means that include prefill, summaries, no model, series that come with use."""

from exporter import catalogue
from exporter.engines import ENGINES
from tests.exporter.engines.built import body, normalised, parsed, samples

TGI = ENGINES["tgi"]


def test_a_mean_over_the_whole_request_is_time_per_output_token_never_inter_token_latency() -> None:
    found = samples(body("tgi-3.3.7"))
    assert found["llm_time_per_output_token_seconds_count"] == 39
    assert not any(name.startswith(catalogue.ITL.name) for name in found)


def test_the_mean_is_said_to_be_approximated() -> None:
    [reading] = [reading for reading in TGI.readings if reading.metric is catalogue.TPOT]
    assert reading.note == "approximated: prefill included"


def test_no_time_to_first_token_is_invented_from_prefill() -> None:
    assert not any(name.startswith(catalogue.TTFT.name) for name in samples(body("tgi-3.3.7")))


def test_nobody_knows_how_full_the_kv_cache_is_but_how_large() -> None:
    found = samples(body("tgi-3.3.7"))
    assert catalogue.KV_CACHE_USAGE.name not in found
    assert found[catalogue.KV_CACHE_CAPACITY.name] == 85327


def test_a_summary_is_no_histogram() -> None:
    page = body("tgi-3.3.7").replace("tgi_request_queue_duration", "tgi_request_queue_duration_of_old")
    summary = page.replace("tgi_request_skipped_tokens", "tgi_request_queue_duration")
    assert not any(name.startswith("llm_request_queue") for name in samples(summary))
    assert normalised(summary).missing == (catalogue.REQUEST_QUEUE,)


def test_a_thousand_buckets_of_batch_sizes_stay_where_they_are() -> None:
    assert len(parsed(body("tgi-3.3.7")).series) > 1700
    assert len(samples(body("tgi-3.3.7"))) < 200


def test_a_printed_dict_as_label_value_is_read_intact() -> None:
    line = """tgi_batch_inference_duration_bucket{le="0.02",method="{'method': 'prefill'}"} 112\n"""
    [series] = parsed(line).series
    assert series.labels == {"le": "0.02", "method": "{'method': 'prefill'}"}
    assert normalised(body("tgi-3.3.7") + line).unmapped == ()


def test_outcomes_are_told_apart_as_far_as_the_engine_does() -> None:
    found = samples(body("tgi-3.3.7"))
    assert {name: value for name, value in found.items() if "finished" in name or "rejected" in name} == {
        'llm_requests_finished_total{outcome="other"}': 39,
        'llm_requests_finished_total{outcome="error"}': 2 + 1,
        'llm_requests_finished_total{outcome="abort"}': 5,
        'llm_requests_rejected_total{reason="queue_requests"}': 11,
    }


def test_the_model_comes_from_the_info_endpoint() -> None:
    facts = TGI.facts({"/info": {"model_id": "bigscience/bloom", "version": "3.3.7", "max_total_tokens": 8192}})
    assert (facts.model, facts.version) == ("bigscience/bloom", "3.3.7")
    assert TGI.facts({}).model is None
    assert TGI.facts({"/info": ["no", "object"]}).model is None


def test_a_server_that_nobody_has_used_is_recognised_and_misses_nothing() -> None:
    found = normalised(body("tgi-3.3.7-unused"))
    assert (found.recognised, found.missing) == (True, ())


def test_a_backend_without_batching_misses_nothing() -> None:
    found = normalised(body("tgi-3.3.7-llamacpp-backend"))
    assert found.missing == ()
    assert catalogue.REQUESTS_RUNNING.name not in found.text


def test_a_renamed_queue_gauge_is_missing_by_name() -> None:
    assert normalised(body("tgi-3.3.7").replace("tgi_queue_size", "tgi_queued")).missing == (
        catalogue.REQUESTS_WAITING,
    )
