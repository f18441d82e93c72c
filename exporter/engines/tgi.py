"""TGI (Text Generation Inference), 2 to 3.3: no time to first token, no inter-token latency, no KV cache use, no model.

Series appear with their first use, so an idle server has hardly a page. Counters have no _total, times no unit.
"""

from datetime import timedelta

from exporter import catalogue
from exporter.dialect import Answers, Engine, Extra, Facts, LabelMap, Reading, always


def _facts(answers: Answers) -> Facts:
    info = answers.get("/info")
    info = info if isinstance(info, dict) else {}
    model, version = info.get("model_id"), info.get("version")
    return Facts(
        model=model if isinstance(model, str) and model else None, version=version if isinstance(version, str) else None
    )


ENGINE = Engine(
    name="tgi",
    title="TGI",
    prefixes=("tgi_",),
    readings=(
        Reading(metric=catalogue.REQUESTS_RUNNING, names=("batch_current_size",)),
        Reading(metric=catalogue.REQUESTS_WAITING, names=("queue_size",)),
        Reading(metric=catalogue.KV_CACHE_CAPACITY, names=("batch_max_total_tokens",), note="2.4 and later"),
        Reading(metric=catalogue.PROMPT_TOKENS, names=("request_input_length_sum",), note="booked at finish"),
        Reading(metric=catalogue.GENERATION_TOKENS, names=("request_generated_tokens_sum",), note="booked at finish"),
        # It tells no reasons.
        Reading(
            metric=catalogue.REQUESTS_FINISHED,
            names=("request_success",),
            label=always(catalogue.OUTCOME, "other"),
            note="without reason: other",
        ),
        # Requests that are not valid are the client's fault: neither finished nor rejected.
        Reading(
            metric=catalogue.REQUESTS_FINISHED,
            names=('request_failure{err=~"generation|incomplete|dropped"}',),
            label=LabelMap(source="err", target=catalogue.OUTCOME, values={"dropped": "abort"}, other="error"),
        ),
        Reading(
            metric=catalogue.REQUESTS_REJECTED,
            names=('request_failure{err="overloaded"}',),
            label=always(catalogue.REJECTION, "queue_requests"),
        ),
        Reading(
            metric=catalogue.TPOT,
            names=("request_mean_time_per_token_duration",),
            note="approximated: prefill included",
        ),
        Reading(metric=catalogue.REQUEST_DURATION, names=("request_duration",)),
        Reading(metric=catalogue.REQUEST_QUEUE, names=("request_queue_duration",)),
        Reading(metric=catalogue.REQUEST_PROMPT_TOKENS, names=("request_input_length",)),
        Reading(metric=catalogue.REQUEST_GENERATION_TOKENS, names=("request_generated_tokens",)),
    ),
    required=(),
    implied={
        "request_success": (
            catalogue.TPOT,
            catalogue.REQUEST_DURATION,
            catalogue.REQUEST_QUEUE,
            catalogue.PROMPT_TOKENS,
            catalogue.GENERATION_TOKENS,
        ),
        "batch_inference_count": (catalogue.REQUESTS_RUNNING, catalogue.REQUESTS_WAITING),
    },
    left_out=(
        "request_count",
        "request_validation_duration",
        "request_inference_duration",
        "request_max_new_tokens",
        "request_skipped_tokens",
        "batch_current_max_tokens",
        "batch_next_size",
        "batch_inference_count",
        "batch_inference_success",
        "batch_inference_failure",
        "batch_inference_duration",
        "batch_forward_duration",
        "batch_decode_duration",
        "batch_filter_duration",
        "batch_concat_duration",
        "batch_concat",
    ),
    extras=(Extra(path="/info", every=timedelta(minutes=1)),),
    facts=_facts,
)
