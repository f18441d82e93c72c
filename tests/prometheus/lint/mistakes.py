"""Mistakes: what each check finds, and the expression that is right instead. Keyed by a sentence, data only."""

from dataclasses import dataclass

__all__ = ["MISTAKES", "RULES", "Mistake"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """An expression that one check alone refuses, at the words `at`, and one that no check has anything against."""

    check: str
    wrong: str
    right: str
    at: str


MISTAKES = {
    "a name that no page has": Mistake(
        check="unknown-metric",
        wrong="sum(llm_request_running)",
        right="sum(llm_requests_running)",
        at="llm_request_running",
    ),
    "an engine's own name": Mistake(
        check="unknown-metric",
        wrong="sum(vllm:num_requests_running)",
        right="sum(llm_requests_running)",
        at="vllm:num_requests_running",
    ),
    "a recorded name that nobody records": Mistake(
        check="unknown-metric",
        wrong="model:llm_ttft_fine:rate5m",
        right="model:llm_ttft_good:rate5m",
        at="model:llm_ttft_fine:rate5m",
    ),
    "a pattern for the name": Mistake(
        check="name-regex",
        wrong='sum({__name__=~"llm_requests_.*"})',
        right='sum({__name__="llm_requests_running"})',
        at="__name__",
    ),
    "a sum over the bounds of a histogram": Mistake(
        check="added-buckets",
        wrong="sum by (model) (rate(llm_time_to_first_token_seconds_bucket[5m]))",
        right="sum by (model) (rate(llm_time_to_first_token_seconds_count[5m]))",
        at="sum",
    ),
    "a sum over the bounds of a histogram but the last": Mistake(
        check="added-buckets",
        wrong='sum by (model) (rate(llm_time_to_first_token_seconds_bucket{le!="+Inf"}[5m]))',
        right='sum by (model) (rate(llm_time_to_first_token_seconds_bucket{le="+Inf"}[5m]))',
        at="sum",
    ),
    "a range of samples as a result": Mistake(
        check="no-samples", wrong="up[5m]", right="max_over_time(up[5m])", at="up"
    ),
    "a range of what is reckoned as a result": Mistake(
        check="no-samples", wrong="sum(up)[5m:]", right="max_over_time(sum(up)[5m:])", at="sum"
    ),
    "text as a result": Mistake(check="no-samples", wrong="'up'", right="up", at="'"),
    "no name at all": Mistake(
        check="name-regex", wrong='sum({job="replicas"})', right='sum(up{job="replicas"})', at="{"
    ),
    "a label that the metric does not have": Mistake(
        check="unknown-label",
        wrong='sum(rate(llm_requests_rejected_total{outcome="error"}[5m]))',
        right='sum(rate(llm_requests_finished_total{outcome="error"}[5m]))',
        at="outcome",
    ),
    "a label that a recorded series lost": Mistake(
        check="unknown-label",
        wrong='model:llm_ttft_good:rate5m{engine="vllm"}',
        right='model:llm_ttft_good:rate5m{model="m"}',
        at="engine",
    ),
    "an aggregation by a label that nothing has": Mistake(
        check="unknown-label",
        wrong="sum by (pod) (llm_requests_running)",
        right="sum by (replica, zone) (llm_requests_running)",
        at="sum",
    ),
    "a join on a label that one side does not have": Mistake(
        check="unknown-label",
        wrong="model:llm_ttft_good:rate5m and on (replica) llm_replica_up",
        right="llm_replica_up and on (model) model:llm_ttft_good:rate5m",
        at="and",
    ),
    "a value outside the closed set": Mistake(
        check="unknown-value",
        wrong='llm_replica_state{state="up"}',
        right='llm_replica_state{state="ready"}',
        at="state=",
    ),
    "a list with a value outside the closed set": Mistake(
        check="unknown-value",
        wrong='llm_replica_state{state=~"ready|down"}',
        right='llm_replica_state{state=~"ready|loading"}',
        at="state=",
    ),
    "a pattern that no value of the closed set matches": Mistake(
        check="unknown-value",
        wrong='llm_replica_state{state!~"un.*d"}',
        right='llm_replica_state{state!~"un.*e"}',
        at="state!",
    ),
    "a misspelled objective of a recorded series": Mistake(
        check="unknown-value",
        wrong='model:llm_slo_burn:rate1h{slo="tttf"}',
        right='model:llm_slo_burn:rate1h{slo="ttft"}',
        at="slo=",
    ),
    "a threshold that is no bucket bound": Mistake(
        check="unknown-bound",
        wrong='sum(rate(llm_time_to_first_token_seconds_bucket{le="3.0"}[5m]))',
        right='sum(rate(llm_time_to_first_token_seconds_bucket{le="2.0"}[5m]))',
        at="le=",
    ),
    "a bound in the spelling that Prometheus 3 rewrites": Mistake(
        check="integer-bound",
        wrong='sum(rate(llm_time_to_first_token_seconds_bucket{le="1"}[5m]))',
        right='sum(rate(llm_time_to_first_token_seconds_bucket{le=~"1|1[.]0"}[5m]))',
        at="le=",
    ),
    "a star meant as a pattern": Mistake(
        check="literal-star",
        wrong='sum(llm_requests_running{model="*"})',
        right='sum(llm_requests_running{model=~".*"})',
        at="model",
    ),
    "a pattern meant as a part": Mistake(
        check="anchored-pattern",
        wrong='sum(llm_requests_running{model=~"llama"})',
        right='sum(llm_requests_running{model=~".*llama.*"})',
        at="model",
    ),
    "a range of two scrapes": Mistake(
        check="short-range",
        wrong="sum(rate(llm_generation_tokens_total[20s]))",
        right="sum(rate(llm_generation_tokens_total[30s]))",
        at="llm_gen",
    ),
    "a sum of raw counters": Mistake(
        check="raw-counter",
        wrong="sum(llm_generation_tokens_total)",
        right="sum(rate(llm_generation_tokens_total[5m]))",
        at="llm_gen",
    ),
    "a comparison of a raw counter": Mistake(
        check="raw-counter",
        wrong='llm_requests_rejected_total{reason="other"} > 5',
        right='increase(llm_requests_rejected_total{reason="other"}[5m]) > 5',
        at="llm_req",
    ),
    "a mean since the process began": Mistake(
        check="raw-counter",
        wrong="sum by (model) (rate(llm_request_queue_seconds_sum[5m]))"
        " / sum by (model) (llm_request_queue_seconds_count)",
        right="sum by (model) (rate(llm_request_queue_seconds_sum[5m]))"
        " / sum by (model) (rate(llm_request_queue_seconds_count[5m]))",
        at="llm_request_queue_seconds_count",
    ),
    "the growth of a counter born at 1 is read without a rate": Mistake(
        check="raw-counter",
        wrong="llm_gpu_xid_errors_total - 1",
        right="llm_gpu_xid_errors_total - (llm_gpu_xid_errors_total offset 5m or 0 * llm_gpu_xid_errors_total)",
        at="llm_gpu",
    ),
    "a rate of a gauge": Mistake(
        check="rate-of-gauge",
        wrong="sum(rate(llm_requests_running[5m]))",
        right="sum(delta(llm_requests_running[5m]))",
        at="rate",
    ),
    "a rate of a rate": Mistake(
        check="rate-of-gauge",
        wrong="increase(model:llm_ttft_good:rate5m[1h])",
        right="sum_over_time(model:llm_ttft_good:rate5m[1h:5m])",
        at="increase",
    ),
    "a difference of a counter": Mistake(
        check="delta-of-counter",
        wrong="sum(delta(llm_generation_tokens_total[5m]))",
        right="sum(increase(llm_generation_tokens_total[5m]))",
        at="delta",
    ),
    "a rate of a sum": Mistake(
        check="rate-of-sum",
        wrong="rate(sum(llm_generation_tokens_total)[5m:30s])",
        right="sum(rate(llm_generation_tokens_total[5m]))",
        at="rate",
    ),
    "a quantile whose buckets are aggregated away": Mistake(
        check="quantile-without-le",
        wrong="histogram_quantile(0.95, sum by (model) (rate(llm_time_to_first_token_seconds_bucket[5m])))",
        right="histogram_quantile(0.95, sum by (model, le) (rate(llm_time_to_first_token_seconds_bucket[5m])))",
        at="histogram_quantile",
    ),
    "a quantile for every rank": Mistake(
        check="quantile-per-rank",
        wrong="max(histogram_quantile(0.95, rate(llm_time_to_first_token_seconds_bucket[5m])))",
        right="max(histogram_quantile(0.95, sum without (rank) (rate(llm_time_to_first_token_seconds_bucket[5m]))))",
        at="histogram_quantile",
    ),
    "the largest bucket of all replicas": Mistake(
        check="bucket-maximum",
        wrong="histogram_quantile(0.99, max by (le) (rate(llm_time_to_first_token_seconds_bucket[5m])))",
        right="histogram_quantile(0.99, sum by (le) (rate(llm_time_to_first_token_seconds_bucket[5m])))",
        at="max",
    ),
    "a mean of quantiles": Mistake(
        check="averaged-ratio",
        wrong="avg(model:llm_ttft_seconds:p95_5m)",
        right="max(model:llm_ttft_seconds:p95_5m)",
        at="avg",
    ),
    "a mean of ratios over time": Mistake(
        check="averaged-ratio",
        wrong="avg_over_time(model:llm_slo_burn:rate5m[1h])",
        right="max_over_time(model:llm_slo_burn:rate5m[1h])",
        at="avg_over_time",
    ),
    "a difference of quantiles": Mistake(
        check="difference-of-quantiles",
        wrong="model:llm_ttft_seconds:p95_5m - model:llm_itl_seconds:p95_5m",
        right="model:llm_ttft_total:rate5m - model:llm_itl_total:rate5m",
        at="-",
    ),
    "a product of shares": Mistake(
        check="product-of-ratios",
        wrong="(model:llm_ttft_good:rate5m / model:llm_ttft_total:rate5m)"
        " * (model:llm_itl_good:rate5m / model:llm_itl_total:rate5m)",
        right="(model:llm_ttft_good:rate5m / model:llm_ttft_total:rate5m) * 100",
        at="*",
    ),
    "a quantile that is not something": Mistake(
        check="negated-comparison",
        wrong="histogram_quantile(0.9, sum by (le) (rate(llm_time_to_first_token_seconds_bucket[5m]))) != 2",
        right="histogram_quantile(0.9, sum by (le) (rate(llm_time_to_first_token_seconds_bucket[5m]))) > 2",
        at="!=",
    ),
    "a comparison of a quantile that does not hold": Mistake(
        check="negated-comparison",
        wrong="(histogram_quantile(0.9, sum by (le) (rate(llm_time_to_first_token_seconds_bucket[5m])))"
        " <= bool 2) == 0",
        right="(model:llm_ttft_seconds:p95_5m <= bool 2) == 0",
        at="==",
    ),
    "models but for those whose ratio is good": Mistake(
        check="negated-comparison",
        wrong="model:llm_replicas:count unless model:llm_ttft_good:rate5m / model:llm_ttft_total:rate5m > 0.9",
        right="model:llm_replicas:count unless model:llm_ttft_good:rate5m / (model:llm_ttft_total:rate5m > 0) > 0.9",
        at="unless",
    ),
    "a burn rate that the objective cannot reach": Mistake(
        check="impossible-threshold",
        wrong="(1 - model:llm_ttft_good:rate1h / (model:llm_ttft_total:rate1h > 0)) > 14.4 * 0.1",
        right="(1 - model:llm_ttft_good:rate1h / (model:llm_ttft_total:rate1h > 0)) > 14.4 * 0.05",
        at="> 14.4",
    ),
    "a recorded burn rate that the objective cannot reach": Mistake(
        check="impossible-threshold",
        wrong='model:llm_slo_burn:rate1h{slo="ttft"} > 201',
        right='model:llm_slo_burn:rate1h{slo="ttft"} > 14.4',
        at="> 201",
    ),
    "a share of errors above all": Mistake(
        check="impossible-threshold",
        wrong='sum(rate(llm_requests_finished_total{outcome="error"}[5m]))'
        " / sum(rate(llm_requests_finished_total[5m])) >= 5",
        right='sum(rate(llm_requests_finished_total{outcome="error"}[5m]))'
        " / sum(rate(llm_requests_finished_total[5m])) >= 0.05",
        at=">=",
    ),
    "a quantile above the last bound": Mistake(
        check="impossible-threshold",
        wrong="model:llm_ttft_seconds:p95_5m > 3000",
        right="model:llm_ttft_seconds:p95_5m > 2000",
        at=">",
    ),
    "a quantile below the first bound": Mistake(
        check="below-first-bound",
        wrong="histogram_quantile(0.99, sum by (le) (rate(llm_request_queue_seconds_bucket[5m]))) > 0.2",
        right="histogram_quantile(0.99, sum by (le) (rate(llm_request_queue_seconds_bucket[5m]))) > 0.3",
        at=">",
    ),
    "a fallback that joins nothing": Mistake(
        check="zero-without-labels",
        wrong="sum by (model) (llm_requests_waiting) or vector(0)",
        right="sum(llm_requests_waiting) or vector(0)",
        at="vector",
    ),
    "sides that have different labels": Mistake(
        check="different-labels",
        wrong="sum by (model) (llm_requests_waiting) / sum by (model, replica) (llm_request_slots)",
        right="sum by (model) (llm_requests_waiting) / sum by (model) (llm_request_slots)",
        at="/",
    ),
    "models but for replicas": Mistake(
        check="different-labels",
        wrong="model:llm_replicas:count unless sum by (model, replica) (llm_requests_waiting) > 4",
        right="model:llm_replicas:count unless sum by (model) (llm_requests_waiting) > 4",
        at="unless",
    ),
    "replicas that are also models": Mistake(
        check="different-labels",
        wrong="sum by (model, replica) (llm_requests_waiting) and model:llm_generation_tokens:rate1m > 0",
        right="sum by (model, replica) (llm_requests_waiting) and on (model) model:llm_generation_tokens:rate1m > 0",
        at="and",
    ),
    "an increase of a recorded ratio": Mistake(
        check="rate-of-gauge",
        wrong="increase(model:llm_prefix_cache_hits:ratio5m[1h]) > 0.1",
        right="delta(model:llm_prefix_cache_hits:ratio5m[1h]) > 0.1",
        at="increase",
    ),
    "a rate within one scrape interval": Mistake(
        check="rate-of-one-sample",
        wrong="sum(rate(llm_generation_tokens_total[10s]))",
        right="sum(rate(llm_generation_tokens_total[1m]))",
        at="llm_gen",
    ),
    "a comparison with NaN": Mistake(
        check="comparison-with-nan",
        wrong="model:llm_ttft_seconds:p95_5m == NaN",
        right="model:llm_ttft_seconds:p95_5m != model:llm_ttft_seconds:p95_5m",
        at="==",
    ),
    "a comparison with NaN that gives 0 always": Mistake(
        check="comparison-with-nan",
        wrong="NaN == bool model:llm_replicas:count",
        right="0 == bool model:llm_replicas:count",
        at="==",
    ),
    "a comparison with NaN that holds always": Mistake(
        check="comparison-with-nan",
        wrong="sum(llm_requests_waiting) != NaN",
        right="sum(llm_requests_waiting) != 0",
        at="!=",
    ),
    "no replica at all that is up": Mistake(
        check="filtered-absence",
        wrong="absent(llm_replica_up == 1)",
        right="absent(llm_replica_up)",
        at="absent",
    ),
    "no replica of a model that was up": Mistake(
        check="filtered-absence",
        wrong='absent_over_time((llm_replica_up{model="m"} == 1)[5m:])',
        right='absent(sum(llm_replica_up{model="m"}) > 0)',
        at="absent",
    ),
    "no model at all that is ready": Mistake(
        check="filtered-absence",
        wrong="absent(model:llm_replicas_ready:count > 0)",
        right='absent(model:llm_replicas_ready:count{model="m"} > 0)',
        at="absent",
    ),
    "a count of nothing": Mistake(
        check="impossible-threshold",
        wrong='count by (model) (llm_replica_state{state="ready"} == 1) == 0',
        right='sum by (model) (llm_replica_state{state="ready"}) == 0',
        at="== 0",
    ),
    "a count of no samples": Mistake(
        check="impossible-threshold",
        wrong="max by (replica) (count_over_time(llm_replica_up[5m])) < 1",
        right="max by (replica) (count_over_time(llm_replica_up[5m])) < 10",
        at="<",
    ),
    "an absence that is 0": Mistake(
        check="impossible-threshold",
        wrong="absent(llm_spare_replicas) == 0",
        right="absent(llm_spare_replicas) == 1",
        at="==",
    ),
    "a quantile in percent": Mistake(
        check="share-above-one",
        wrong="histogram_quantile(95, sum by (le) (rate(llm_time_to_first_token_seconds_bucket[5m])))",
        right="histogram_quantile(0.95, sum by (le) (rate(llm_time_to_first_token_seconds_bucket[5m])))",
        at="95",
    ),
    "a quantile of replicas in percent": Mistake(
        check="share-above-one",
        wrong="quantile by (model) (50, sum by (model, replica) (llm_requests_waiting))",
        right="quantile by (model) (0.5, sum by (model, replica) (llm_requests_waiting))",
        at="50",
    ),
    "a sample for every rank": Mistake(
        check="per-rank",
        wrong="llm_kv_cache_usage_ratio > 0.9",
        right="max without (rank) (llm_kv_cache_usage_ratio) > 0.9",
        at=">",
    ),
}

_RIGHT = """
- alert: ModelIdle
  expr: sum by (model) (max_over_time(llm_requests_running[5m])) == 0
  for: 5m
  labels: {severity: ticket}
  annotations: {summary: "{{ $labels.model }} is idle", runbook_url: "http://wiki/idle"}
"""

_CONDITION = "sum by (model) (max_over_time(llm_requests_running[5m])) == 0"

RULES = {
    "an alert that fires for 0 as for 1": ("bool-as-condition", ("])) == 0", "])) == bool 0")),
    "a sum of 0 and 1": ("bool-as-condition", (_CONDITION, "sum by (model) (model:llm_replicas:count > bool 5)")),
    "one of two that are always there": (
        "bool-as-condition",
        ("])) == 0", "])) == 0 or (model:llm_requests_waiting:sum > bool 4) * 2"),
    ),
    "a wait shorter than the time between two looks": ("short-wait", ("for: 5m", "for: 5s")),
    "an alert without a severity": ("severity", ("{severity: ticket}", "{team: llm}")),
    "an alert of a severity that nobody hears": ("severity", ("ticket", "critical")),
    "an alert that says nothing": ("summary", ("summary:", "title:")),
    "an alert without a runbook": ("runbook", ("runbook_url:", "more:")),
    "an alert whose label changes with the value": ("value-in-label", ("ticket}", 'ticket, now: "{{ $value }}"}')),
    "a text about a label that is not there": ("unknown-label-in-text", ("$labels.model", "$labels.replica")),
    "an absence that does not say whose": (
        "lost-labels",
        ("sum by (model) (max_over_time(llm_requests_running[5m])) == 0", 'absent(up{job="exporter"} == 1)'),
        ("{{ $labels.model }}", "it"),
    ),
    "a wait that a failed scrape starts anew": (
        "interrupted-wait",
        ("sum by (model) (max_over_time(llm_requests_running[5m])) == 0", "llm_replica_up == 0"),
    ),
}
"""claim -> the check, and what to replace in an alert that is right."""


def alert(*replacements: tuple[str, str]) -> str:
    """Write a rule file with the alert that is right, or with a mistake put into it."""
    text = _RIGHT
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    return "groups:\n- name: own\n  rules:" + text.replace("\n", "\n  ")
