"""The catalogue keeps Prometheus' conventions, so that nobody downstream has to know the exceptions."""

import re

import pytest

from exporter import catalogue
from exporter.catalogue import METRICS, Group, Kind, Label, Metric, bound_text
from exporter.failures import Reason, State
from exporter.gpu.reading import Failure

UNITS = (
    *("_seconds", "_bytes", "_tokens", "_ratio", "_timestamp_seconds", "_total", "_info"),
    *("_celsius", "_hertz", "_joules", "_watts"),
)
DIMENSIONLESS = {
    "llm_replica_up",
    "llm_replica_state",
    "llm_replica_draining",
    "llm_replica_missing_series",
    "llm_replica_unmapped_series",
    "llm_requests_running",
    "llm_requests_waiting",
    "llm_request_slots",
    "llm_slo_threshold_exact",
    "llm_spare_replicas",
    "llm_fleet_replicas",
    "llm_gpu_up",
    "llm_gpu_failure",
    "llm_gpu_throttled",
    "llm_gpu_remapped_rows",
    "llm_gpu_collector_cards",
    "llm_gpu_collector_up",
    "llm_gpu_collector_failure",
    "llm_exporter_fleet_reload_success",
    "llm_exporter_probes_in_flight",
}
LABELS = tuple(value for value in vars(catalogue).values() if isinstance(value, Label))


def named(metric: Metric) -> str:
    return metric.name


def test_names_are_unique() -> None:
    names = [metric.name for metric in METRICS]
    assert sorted(set(names)) == sorted(names)


def test_no_name_is_another_ones_histogram_series() -> None:
    parts = {
        part
        for metric in METRICS
        if metric.kind is Kind.HISTOGRAM
        for part in (metric.bucket, metric.count, metric.sum)
    }
    assert parts.isdisjoint(metric.name for metric in METRICS)


@pytest.mark.parametrize("metric", METRICS, ids=named)
def test_a_name_is_ours_and_ends_in_its_unit(metric: Metric) -> None:
    assert re.fullmatch(r"llm_[a-z_]+", metric.name), "colons belong to recording rules, other prefixes to others"
    assert metric.name.endswith(UNITS) or metric.name in DIMENSIONLESS
    assert not metric.name.endswith(("_milliseconds", "_ms", "_percent", "_perc", "_count", "_sum", "_bucket"))


@pytest.mark.parametrize("metric", METRICS, ids=named)
def test_counters_and_only_counters_end_in_total(metric: Metric) -> None:
    assert metric.name.endswith("_total") is (metric.kind is Kind.COUNTER)


@pytest.mark.parametrize("metric", METRICS, ids=named)
def test_help_is_a_sentence(metric: Metric) -> None:
    assert metric.help.endswith(".")
    assert "\n" not in metric.help


@pytest.mark.parametrize("metric", METRICS, ids=named)
def test_a_histogram_and_nothing_else_has_ascending_finite_buckets(metric: Metric) -> None:
    assert bool(metric.buckets) is (metric.kind is Kind.HISTOGRAM)
    assert list(metric.buckets) == sorted(set(metric.buckets))
    assert all(0 < bound < float("inf") for bound in metric.buckets)


@pytest.mark.parametrize("metric", METRICS, ids=named)
def test_no_label_is_one_that_prometheus_or_service_discovery_sets(metric: Metric) -> None:
    taken = {"instance", "job", "le", "quantile", "replica", "engine", "pod", "namespace", "__name__"}
    if metric.group is Group.GPU:
        taken.remove("replica")  # on the page of a host, whose target has no replica
    assert taken.isdisjoint(label.name for label in metric.labels)
    assert len({label.name for label in metric.labels}) == len(metric.labels)


@pytest.mark.parametrize("label", LABELS, ids=lambda label: label.name)
def test_closed_label_values_are_words_without_repetition(label: Label) -> None:
    assert len(set(label.values)) == len(label.values)
    assert all(re.fullmatch(r"[a-z]+([_-][a-z]+)*", value) for value in label.values)


def test_states_and_reasons_of_the_code_are_those_of_the_catalogue() -> None:
    assert tuple(State) == catalogue.STATE.values
    assert tuple(Reason) == catalogue.SCRAPE_ERROR.values
    assert tuple(Failure) == catalogue.GPU_FAILURE.values


@pytest.mark.parametrize(
    ("bound", "text"), [(1.0, "1.0"), (0.25, "0.25"), (2560.0, "2560.0"), (float("inf"), "+Inf"), (0.001, "0.001")]
)
def test_a_bound_is_printed_in_the_form_that_prometheus_3_stores(bound: float, text: str) -> None:
    assert bound_text(bound) == text
