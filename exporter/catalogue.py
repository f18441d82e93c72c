"""The catalogue: every metric, label, closed label value and bucket list that Servewatch speaks.

Data only. It imports nothing of ours, and it is the one place that spells a metric name: the exporter emits these
objects, rules and boards select by them, METRICS.md is generated from them.
"""

from dataclasses import dataclass
from enum import Enum

__all__ = ["METRICS", "Group", "Kind", "Label", "Metric", "bound_text"]


class Kind(Enum):
    """Prometheus' metric types that we emit."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Group(Enum):
    """The chapters of METRICS.md, in reading order."""

    STATE = "State of a replica"
    LOAD = "Load"
    WORK = "Work done"
    OUTCOME = "Outcome of requests"
    LATENCY = "Latency"
    SIZE = "Size of requests"
    GPU = "GPU"
    CONFIGURATION = "Configuration as data"
    EXPORTER = "The exporter itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A label; `values` closes the set where we choose the values ourselves."""

    name: str
    help: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric family.

    `help` states the unit and what one observation or increment stands for. `labels` are those on the page;
    the target labels `replica`, `engine` and free ones come from service discovery. `buckets` are upper bounds in
    the metric's unit, ascending, without +Inf.
    """

    name: str
    kind: Kind
    group: Group
    help: str
    labels: tuple[Label, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def bucket(self) -> str:
        """Name of the bucket series of a histogram."""
        return f"{self.name}_bucket"

    @property
    def count(self) -> str:
        """Name of the count series of a histogram."""
        return f"{self.name}_count"

    @property
    def sum(self) -> str:
        """Name of the sum series of a histogram."""
        return f"{self.name}_sum"


def bound_text(bound: float) -> str:
    """Print a bucket bound in the one form used everywhere: `1.0`, `0.25`, `+Inf`.

    Prometheus 3 rewrites `le` to this form at ingestion; writing it ourselves makes 2.x store the same.
    """
    return "+Inf" if bound == float("inf") else repr(float(bound))


# --- labels --------------------------------------------------------------------------------------------------------

REPLICA = Label(name="replica", help="name of the replica in fleet.yml (target label)")
ENGINE = Label(
    name="engine",
    help="serving engine (target label)",
    values=("vllm", "llama-server", "sglang", "tensorrt-llm", "tgi"),
)
MODEL = Label(name="model", help="served model, as configured or as the engine says")
RANK = Label(name="rank", help="data-parallel rank, only where there is more than one")
SLO = Label(name="slo", help="objective", values=("ttft", "itl", "availability", "goodput"))
STATE = Label(
    name="state",
    help="the one state a replica is in",
    values=("ready", "loading", "sleeping", "draining", "stuck", "denied", "disabled", "unreachable", "broken"),
)
OUTCOME = Label(
    name="outcome",
    help="how a request ended",
    values=("stop", "length", "abort", "error", "other"),
)
REJECTION = Label(
    name="reason",
    help="why a request was turned away before it was admitted",
    values=("queue_requests", "queue_tokens", "other"),
)
SCRAPE_ERROR = Label(
    name="reason",
    help="why a scrape failed",
    values=(
        "dns",
        "refused",
        "reset",
        "timeout",
        "tls",
        "redirect",
        "auth",
        "status",
        "size",
        "encoding",
        "parse",
        "incomplete",
    ),
)
MISSING = Label(name="metric", help="catalogue name of the series that no known engine name provides")
VERSION = Label(name="version", help="version the engine reports, empty if it does not")
GPU = Label(name="gpu", help="uuid of the card, or its serial number where its maker gives no uuid")
PARTITION = Label(name="partition", help="MIG GPU instance or AMD partition, only where the card is divided")
GPU_SOURCE = Label(name="source", help="who tells about the cards", values=("nvml", "dcgm", "amd"))
GPU_ORIGIN = Label(name="origin", help="host:port of the page that is read, empty for the driver of this host")
GPU_FAILURE = Label(
    name="reason",
    help="what is wrong with a card, or why its source cannot tell",
    values=(
        *("lost", "reset_required", "no_power", "no_permission", "unknown", "unseen"),
        *(
            "no_library",
            "no_driver",
            "driver_mismatch",
            "no_gpu",
            "timeout",
            "crashed",
            "stale",
            "unreachable",
            "unusable",
        ),
    ),
)
THROTTLE = Label(
    name="reason",
    help="why a card runs slower than it could",
    values=("power_cap", "software_thermal", "hardware_thermal", "hardware_slowdown", "power_brake"),
)
ECC_KIND = Label(name="kind", help="whether the error could be corrected", values=("corrected", "uncorrected"))
ROW_KIND = Label(
    name="kind",
    help="why rows were remapped; pending: after the next reset; failed: no spare row is left",
    values=("correctable", "uncorrectable", "pending", "failed"),
)
XID = Label(name="xid", help="number of the error in NVIDIA's list of Xid errors")
CARD = Label(name="card", help="what the maker calls the card")
DRIVER = Label(name="driver", help="version of the driver")
PCI = Label(name="pci", help="PCI address of the card, as the kernel writes it")
HOSTNAME = Label(name="hostname", help="host of the card, as its source names it")

_PAGE = (MODEL, RANK)
_CARD = (GPU, PARTITION)

# --- bucket lists: vLLM's defaults, unchanged from 0.8.5 to 0.33 (vllm/v1/metrics/loggers.py) ----------------------

TTFT_BUCKETS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
ITL_BUCKETS = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
)
REQUEST_BUCKETS = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)
TOKEN_BUCKETS = tuple(float(m * 10**e) for e in range(6) for m in (1, 2, 5))  # 1, 2, 5, 10 … 500 000 tokens

# --- state ---------------------------------------------------------------------------------------------------------

REPLICA_UP = Metric(
    name="llm_replica_up",
    kind=Kind.GAUGE,
    group=Group.STATE,
    help="1 if this scrape gave a page that parses and holds the engine's required series, else 0.",
    labels=(MODEL,),
)
REPLICA_STATE = Metric(
    name="llm_replica_state",
    kind=Kind.GAUGE,
    group=Group.STATE,
    help="1 for the state the replica is in, 0 for every other state.",
    labels=(MODEL, STATE),
)
REPLICA_INFO = Metric(
    name="llm_replica_info",
    kind=Kind.GAUGE,
    group=Group.STATE,
    help="Constant 1; its labels describe the replica.",
    labels=(MODEL, VERSION),
)
REPLICA_START_TIME = Metric(
    name="llm_replica_start_time_seconds",
    kind=Kind.GAUGE,
    group=Group.STATE,
    help="Unix time at which the engine process started, in seconds.",
    labels=(MODEL,),
)
REPLICA_DRAINING = Metric(
    name="llm_replica_draining",
    kind=Kind.GAUGE,
    group=Group.STATE,
    help="1 while the replica carries a drain marker, else 0. Its state is then draining, whether it answers or not.",
    labels=(MODEL,),
)
DRAIN_EXPIRY = Metric(
    name="llm_replica_drain_expiry_timestamp_seconds",
    kind=Kind.GAUGE,
    group=Group.STATE,
    help="Unix time at which the drain marker ends by itself, in seconds; absent without a marker.",
    labels=(MODEL,),
)
SCRAPE_DURATION = Metric(
    name="llm_replica_scrape_duration_seconds",
    kind=Kind.GAUGE,
    group=Group.STATE,
    help="Time this scrape of the engine took, in seconds, failed or not.",
)
SCRAPE_ERRORS = Metric(
    name="llm_replica_scrape_errors_total",
    kind=Kind.COUNTER,
    group=Group.STATE,
    help="Failed scrapes of this replica since the exporter started.",
    labels=(SCRAPE_ERROR,),
)
MISSING_SERIES = Metric(
    name="llm_replica_missing_series",
    kind=Kind.GAUGE,
    group=Group.STATE,
    help="1 for each series that this engine is known to provide and that its page did not hold under any known name.",
    labels=(MISSING,),
)
UNMAPPED_SERIES = Metric(
    name="llm_replica_unmapped_series",
    kind=Kind.GAUGE,
    group=Group.STATE,
    help="Series on the engine's page with the engine's prefix that the catalogue has no place for.",
)
DROPPED_SAMPLES = Metric(
    name="llm_replica_dropped_samples_total",
    kind=Kind.COUNTER,
    group=Group.STATE,
    help="Samples of the engine's pages that were unusable (bad value, broken histogram) since the exporter started.",
)

# --- load ----------------------------------------------------------------------------------------------------------

REQUESTS_RUNNING = Metric(
    name="llm_requests_running",
    kind=Kind.GAUGE,
    group=Group.LOAD,
    help="Requests being prefilled or decoded now.",
    labels=_PAGE,
)
REQUESTS_WAITING = Metric(
    name="llm_requests_waiting",
    kind=Kind.GAUGE,
    group=Group.LOAD,
    help="Requests in the engine's queue now.",
    labels=_PAGE,
)
REQUEST_SLOTS = Metric(
    name="llm_request_slots",
    kind=Kind.GAUGE,
    group=Group.LOAD,
    help="Requests the engine can run at once, where it says so.",
    labels=_PAGE,
)
KV_CACHE_USAGE = Metric(
    name="llm_kv_cache_usage_ratio",
    kind=Kind.GAUGE,
    group=Group.LOAD,
    help="Share of the KV cache held by running requests, 0 to 1; evictable prefix cache counts as free.",
    labels=_PAGE,
)
KV_CACHE_CAPACITY = Metric(
    name="llm_kv_cache_capacity_tokens",
    kind=Kind.GAUGE,
    group=Group.LOAD,
    help="Tokens the KV cache can hold.",
    labels=_PAGE,
)
PREEMPTIONS = Metric(
    name="llm_preemptions_total",
    kind=Kind.COUNTER,
    group=Group.LOAD,
    help="Times a running request lost its KV cache to another and went back to the queue.",
    labels=_PAGE,
)
PREFIX_CACHE_QUERIES = Metric(
    name="llm_prefix_cache_query_tokens_total",
    kind=Kind.COUNTER,
    group=Group.LOAD,
    help="Prompt tokens looked up in the prefix cache.",
    labels=_PAGE,
)
PREFIX_CACHE_HITS = Metric(
    name="llm_prefix_cache_hit_tokens_total",
    kind=Kind.COUNTER,
    group=Group.LOAD,
    help="Prompt tokens found in the prefix cache.",
    labels=_PAGE,
)

# --- work ----------------------------------------------------------------------------------------------------------

PROMPT_TOKENS = Metric(
    name="llm_prompt_tokens_total",
    kind=Kind.COUNTER,
    group=Group.WORK,
    help="Prompt tokens read, cached ones included.",
    labels=_PAGE,
)
PROMPT_TOKENS_CACHED = Metric(
    name="llm_prompt_tokens_cached_total",
    kind=Kind.COUNTER,
    group=Group.WORK,
    help="Prompt tokens taken from a cache instead of being computed.",
    labels=_PAGE,
)
GENERATION_TOKENS = Metric(
    name="llm_generation_tokens_total",
    kind=Kind.COUNTER,
    group=Group.WORK,
    help="Tokens generated. vLLM books them at each step, llama-server at the end of a request.",
    labels=_PAGE,
)
PREFILL_SECONDS = Metric(
    name="llm_prefill_seconds_total",
    kind=Kind.COUNTER,
    group=Group.WORK,
    help="Seconds spent in prefill, summed over requests.",
    labels=_PAGE,
)
DECODE_SECONDS = Metric(
    name="llm_decode_seconds_total",
    kind=Kind.COUNTER,
    group=Group.WORK,
    help="Seconds spent decoding, summed over requests: grows by up to N per second with N requests running.",
    labels=_PAGE,
)
SPEC_DECODE_DRAFTS = Metric(
    name="llm_spec_decode_drafts_total",
    kind=Kind.COUNTER,
    group=Group.WORK,
    help="Drafts verified by speculative decoding.",
    labels=_PAGE,
)
SPEC_DECODE_DRAFT_TOKENS = Metric(
    name="llm_spec_decode_draft_tokens_total",
    kind=Kind.COUNTER,
    group=Group.WORK,
    help="Tokens proposed by speculative decoding.",
    labels=_PAGE,
)
SPEC_DECODE_ACCEPTED_TOKENS = Metric(
    name="llm_spec_decode_accepted_tokens_total",
    kind=Kind.COUNTER,
    group=Group.WORK,
    help="Proposed tokens that the model accepted.",
    labels=_PAGE,
)

# --- outcome -------------------------------------------------------------------------------------------------------

REQUESTS_FINISHED = Metric(
    name="llm_requests_finished_total",
    kind=Kind.COUNTER,
    group=Group.OUTCOME,
    help="Requests that ended, by outcome. vLLM never books requests whose client went away.",
    labels=(*_PAGE, OUTCOME),
)
REQUESTS_REJECTED = Metric(
    name="llm_requests_rejected_total",
    kind=Kind.COUNTER,
    group=Group.OUTCOME,
    help="Requests turned away before they were admitted. They are not among the finished ones.",
    labels=(MODEL, REJECTION),
)

# --- latency -------------------------------------------------------------------------------------------------------

TTFT = Metric(
    name="llm_time_to_first_token_seconds",
    kind=Kind.HISTOGRAM,
    group=Group.LATENCY,
    help="Time from arrival to the first token, in seconds; one observation per request that got a token.",
    labels=_PAGE,
    buckets=TTFT_BUCKETS,
)
ITL = Metric(
    name="llm_inter_token_latency_seconds",
    kind=Kind.HISTOGRAM,
    group=Group.LATENCY,
    help="Time between two outputs of one request, in seconds; one observation per output (vLLM) or token (SGLang).",
    labels=_PAGE,
    buckets=ITL_BUCKETS,
)
TPOT = Metric(
    name="llm_time_per_output_token_seconds",
    kind=Kind.HISTOGRAM,
    group=Group.LATENCY,
    help="A request's mean inter-token latency, decode time / (tokens - 1), in seconds; one observation per request.",
    labels=_PAGE,
    buckets=ITL_BUCKETS,
)
REQUEST_DURATION = Metric(
    name="llm_request_duration_seconds",
    kind=Kind.HISTOGRAM,
    group=Group.LATENCY,
    help="Time from arrival to the last token, in seconds; one observation per finished request.",
    labels=_PAGE,
    buckets=REQUEST_BUCKETS,
)
REQUEST_QUEUE = Metric(
    name="llm_request_queue_seconds",
    kind=Kind.HISTOGRAM,
    group=Group.LATENCY,
    help="Time a request waited to be scheduled, in seconds; one observation per finished request.",
    labels=_PAGE,
    buckets=REQUEST_BUCKETS,
)
REQUEST_PREFILL = Metric(
    name="llm_request_prefill_seconds",
    kind=Kind.HISTOGRAM,
    group=Group.LATENCY,
    help="Time from being scheduled to the first token, in seconds; one observation per finished request.",
    labels=_PAGE,
    buckets=REQUEST_BUCKETS,
)
REQUEST_DECODE = Metric(
    name="llm_request_decode_seconds",
    kind=Kind.HISTOGRAM,
    group=Group.LATENCY,
    help="Time from the first to the last token, in seconds; one observation per finished request.",
    labels=_PAGE,
    buckets=REQUEST_BUCKETS,
)

# --- size ----------------------------------------------------------------------------------------------------------

REQUEST_PROMPT_TOKENS = Metric(
    name="llm_request_prompt_tokens",
    kind=Kind.HISTOGRAM,
    group=Group.SIZE,
    help="Prompt tokens of a request; one observation per finished request.",
    labels=_PAGE,
    buckets=TOKEN_BUCKETS,
)
REQUEST_GENERATION_TOKENS = Metric(
    name="llm_request_generation_tokens",
    kind=Kind.HISTOGRAM,
    group=Group.SIZE,
    help="Tokens generated for a request; one observation per finished request.",
    labels=_PAGE,
    buckets=TOKEN_BUCKETS,
)

# --- GPU -----------------------------------------------------------------------------------------------------------

GPU_INFO = Metric(
    name="llm_gpu_info",
    kind=Kind.GAUGE,
    group=Group.GPU,
    help="Constant 1; its labels describe the card.",
    labels=(*_CARD, CARD, DRIVER, PCI, HOSTNAME, GPU_SOURCE),
)
GPU_UP = Metric(
    name="llm_gpu_up",
    kind=Kind.GAUGE,
    group=Group.GPU,
    help="1 if the card answers, 0 if it was there and does not; absent while its source cannot tell.",
    labels=_CARD,
)
GPU_TROUBLE = Metric(
    name="llm_gpu_failure",
    kind=Kind.GAUGE,
    group=Group.GPU,
    help="1 for each thing that is wrong with a card, which can answer all the same; unseen: its source cannot tell.",
    labels=(*_CARD, GPU_FAILURE),
)
REPLICA_GPU_INFO = Metric(
    name="llm_replica_gpu_info",
    kind=Kind.GAUGE,
    group=Group.GPU,
    help="Constant 1 for each card that a replica uses, as fleet.yml says or as the processes on this host show.",
    labels=(REPLICA, MODEL, *_CARD),
)
REPLICA_GPU_MEMORY = Metric(
    name="llm_replica_gpu_memory_bytes",
    kind=Kind.GAUGE,
    group=Group.GPU,
    help="Memory that the replica's processes hold on the card, in bytes, where they run on this host and can be seen.",
    labels=(REPLICA, MODEL, *_CARD),
)
GPU_UTILIZATION = Metric(
    name="llm_gpu_utilization_ratio",
    kind=Kind.GAUGE,
    group=Group.GPU,
    help="Share of time in which the card computed anything, 0 to 1; 1 does not mean that it could not do more.",
    labels=_CARD,
)
GPU_MEMORY_USED = Metric(
    name="llm_gpu_memory_used_bytes",
    kind=Kind.GAUGE,
    group=Group.GPU,
    help="Memory in use, in bytes, without what the driver reserves where the source can tell.",
    labels=_CARD,
)
GPU_MEMORY_FREE = Metric(
    name="llm_gpu_memory_free_bytes",
    kind=Kind.GAUGE,
    group=Group.GPU,
    help="Memory that can still be allocated, in bytes.",
    labels=_CARD,
)
GPU_MEMORY_TOTAL = Metric(
    name="llm_gpu_memory_total_bytes",
    kind=Kind.GAUGE,
    group=Group.GPU,
    help="Memory of the card or partition, in bytes; absent where it shares the host's memory.",
    labels=_CARD,
)
GPU_MEMORY_BANDWIDTH = Metric(
    name="llm_gpu_memory_bandwidth_utilization_ratio",
    kind=Kind.GAUGE,
    group=Group.GPU,
    help="Share of memory bandwidth in use, 0 to 1; from NVML the share of time in which memory was read or written.",
    labels=_CARD,
)
GPU_TEMPERATURE = Metric(
    name="llm_gpu_temperature_celsius",
    kind=Kind.GAUGE,
    group=Group.GPU,
    help="Temperature of the chip, in degrees Celsius.",
    labels=_CARD,
)
GPU_POWER = Metric(
    name="llm_gpu_power_watts",
    kind=Kind.GAUGE,
    group=Group.GPU,
    help="Power drawn, in watts.",
    labels=_CARD,
)
GPU_POWER_LIMIT = Metric(
    name="llm_gpu_power_limit_watts",
    kind=Kind.GAUGE,
    group=Group.GPU,
    help="Power that the driver allows, in watts.",
    labels=_CARD,
)
GPU_ENERGY = Metric(
    name="llm_gpu_energy_joules_total",
    kind=Kind.COUNTER,
    group=Group.GPU,
    help="Energy used since the driver was loaded, in joules.",
    labels=_CARD,
)
GPU_SM_CLOCK = Metric(
    name="llm_gpu_sm_clock_hertz",
    kind=Kind.GAUGE,
    group=Group.GPU,
    help="Clock of the compute units, in hertz.",
    labels=_CARD,
)
GPU_THROTTLED = Metric(
    name="llm_gpu_throttled",
    kind=Kind.GAUGE,
    group=Group.GPU,
    help="1 for each reason that slows the card down now, 0 for every other one.",
    labels=(*_CARD, THROTTLE),
)
GPU_ECC_ERRORS = Metric(
    name="llm_gpu_ecc_errors_total",
    kind=Kind.COUNTER,
    group=Group.GPU,
    help="Memory errors since the driver was loaded.",
    labels=(*_CARD, ECC_KIND),
)
GPU_XID_ERRORS = Metric(
    name="llm_gpu_xid_errors_total",
    kind=Kind.COUNTER,
    group=Group.GPU,
    help="Xid errors since the exporter started. A page of DCGM tells the last one only: one that is there at first is"
    " not counted, and that it happened again stays hidden.",
    labels=(*_CARD, XID),
)
GPU_XID_TIME = Metric(
    name="llm_gpu_xid_last_timestamp_seconds",
    kind=Kind.GAUGE,
    group=Group.GPU,
    help="Unix time of the last Xid error of that number, in seconds.",
    labels=(*_CARD, XID),
)
GPU_REMAPPED_ROWS = Metric(
    name="llm_gpu_remapped_rows",
    kind=Kind.GAUGE,
    group=Group.GPU,
    help="Memory rows replaced by spare ones; 1 or 0 for pending and failed.",
    labels=(*_CARD, ROW_KIND),
)
GPU_PCIE_REPLAYS = Metric(
    name="llm_gpu_pcie_replays_total",
    kind=Kind.COUNTER,
    group=Group.GPU,
    help="Packets that PCIe had to send again.",
    labels=_CARD,
)
GPU_NVLINK_ERRORS = Metric(
    name="llm_gpu_nvlink_errors_total",
    kind=Kind.COUNTER,
    group=Group.GPU,
    help="Errors on all links between cards: checksums, replays, recoveries.",
    labels=_CARD,
)
GPU_COLLECTOR_UP = Metric(
    name="llm_gpu_collector_up",
    kind=Kind.GAUGE,
    group=Group.GPU,
    help="1 if the source told about its cards, else 0; a comment on the page says why.",
    labels=(GPU_SOURCE, GPU_ORIGIN),
)
GPU_COLLECTOR_FAILURE = Metric(
    name="llm_gpu_collector_failure",
    kind=Kind.GAUGE,
    group=Group.GPU,
    help="1 for the reason why the source could not tell.",
    labels=(GPU_SOURCE, GPU_ORIGIN, GPU_FAILURE),
)
GPU_COLLECTOR_CARDS = Metric(
    name="llm_gpu_collector_cards",
    kind=Kind.GAUGE,
    group=Group.GPU,
    help="Cards that the source tells of, or told of when it last could.",
    labels=(GPU_SOURCE, GPU_ORIGIN),
)
GPU_COLLECTOR_TIME = Metric(
    name="llm_gpu_collector_success_timestamp_seconds",
    kind=Kind.GAUGE,
    group=Group.GPU,
    help="Unix time at which the source last told of its cards, in seconds.",
    labels=(GPU_SOURCE, GPU_ORIGIN),
)
GPU_COLLECTOR_SECONDS = Metric(
    name="llm_gpu_collector_duration_seconds",
    kind=Kind.GAUGE,
    group=Group.GPU,
    help="Time that the source took, in seconds, failed or not.",
    labels=(GPU_SOURCE, GPU_ORIGIN),
)
GPU_DROPPED = Metric(
    name="llm_gpu_dropped_samples_total",
    kind=Kind.COUNTER,
    group=Group.GPU,
    help="Values that could not be true or could not be read, left out since the exporter started.",
    labels=(GPU_SOURCE, GPU_ORIGIN),
)

# --- configuration -------------------------------------------------------------------------------------------------

SLO_OBJECTIVE = Metric(
    name="llm_slo_objective_ratio",
    kind=Kind.GAUGE,
    group=Group.CONFIGURATION,
    help="Share of requests that must meet the objective, 0 to 1.",
    labels=(MODEL, SLO),
)
SLO_THRESHOLD = Metric(
    name="llm_slo_threshold_seconds",
    kind=Kind.GAUGE,
    group=Group.CONFIGURATION,
    help="Latency a request must stay within to meet the objective, in seconds.",
    labels=(MODEL, SLO),
)
SLO_THRESHOLD_EXACT = Metric(
    name="llm_slo_threshold_exact",
    kind=Kind.GAUGE,
    group=Group.CONFIGURATION,
    help="1 if the engine has a bucket bound at the threshold, 0 if the count there is interpolated.",
    labels=(MODEL, SLO),
)
SPARE_REPLICAS = Metric(
    name="llm_spare_replicas",
    kind=Kind.GAUGE,
    group=Group.CONFIGURATION,
    help="Replicas of each model that may fail without loss of capacity, as configured.",
)
FLEET_REPLICAS = Metric(
    name="llm_fleet_replicas",
    kind=Kind.GAUGE,
    group=Group.CONFIGURATION,
    help="Replicas in fleet.yml, by model where it is configured or known.",
    labels=(MODEL,),
)

# --- the exporter itself -------------------------------------------------------------------------------------------

EXPORTER_BUILD_INFO = Metric(
    name="llm_exporter_build_info",
    kind=Kind.GAUGE,
    group=Group.EXPORTER,
    help="Constant 1; its label is the exporter's version.",
    labels=(VERSION,),
)
FLEET_RELOAD_SUCCESS = Metric(
    name="llm_exporter_fleet_reload_success",
    kind=Kind.GAUGE,
    group=Group.EXPORTER,
    help="1 if the last reading of fleet.yml was used, 0 if it was refused and the fleet before it still holds.",
)
FLEET_RELOAD_TIME = Metric(
    name="llm_exporter_fleet_reload_success_timestamp_seconds",
    kind=Kind.GAUGE,
    group=Group.EXPORTER,
    help="Unix time at which the fleet in use was read, in seconds.",
)
PROBES = Metric(
    name="llm_exporter_probes_total",
    kind=Kind.COUNTER,
    group=Group.EXPORTER,
    help="Answers to /probe, shared scrapes included.",
)
PROBES_IN_FLIGHT = Metric(
    name="llm_exporter_probes_in_flight",
    kind=Kind.GAUGE,
    group=Group.EXPORTER,
    help="Requests to /probe being answered now.",
)
SCRAPES_SECONDS = Metric(
    name="llm_exporter_scrape_seconds",
    kind=Kind.HISTOGRAM,
    group=Group.EXPORTER,
    help="Time that scrapes of engines took, in seconds; one observation per scrape, failed or not.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)

METRICS: tuple[Metric, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
