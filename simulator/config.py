"""Configuration of the fleet: demo.yml in, frozen dataclasses out, or an error that names file, key, value and fix."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import yaml

from simulator.engine import Limits, Speed
from simulator.fields import ConfigError, Fields


class EngineKind(Enum):
    """Whose dialect a replica speaks."""

    VLLM = "vllm"
    LLAMA_SERVER = "llama-server"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model and the machine that serves it; durations in seconds."""

    name: str
    engine: EngineKind
    max_model_len: int
    limits: Limits
    speed: Speed
    loading: float
    answer_tokens: int
    metrics: bool
    api_key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSpec:
    """One replica; port 0 lets the operating system choose."""

    name: str
    model: Model
    port: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What clients ask of one model; rates per second, durations in seconds."""

    model: str
    rate: float
    swing: float
    swing_period: float
    burst_size: int
    burst_every: float
    prompt_tokens: int
    max_tokens: int
    shared_prefix_share: float
    shared_prefix_tokens: int
    timeout: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Everything that demo.yml says."""

    replicas: tuple[ReplicaSpec, ...]
    traffic: tuple[Traffic, ...]
    traffic_seed: int


def load_fleet(path: Path) -> Fleet:
    """Read the configuration; ConfigError when there is none or when it is wrong."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; give an existing file with --config") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: is not YAML: {error}") from error
    return parse_fleet(document, str(path))


def parse_fleet(document: object, source: str) -> Fleet:
    """Turn the parsed YAML into a fleet; `source` names the file in messages."""
    top = Fields(document, source, "")
    models = {name: _model(name, fields) for name, fields in top.sections("models").items()}
    replicas = tuple(_replica(fields, models) for fields in top.items("replicas"))
    _refuse_repeats(replicas, source)
    load = top.section("load")
    seed = load.integer("seed", default=0, minimum=0)
    traffic = tuple(_traffic(name, fields, models) for name, fields in load.sections("models").items())
    load.refuse_unknown()
    top.refuse_unknown()
    return Fleet(replicas=replicas, traffic=traffic, traffic_seed=seed)


def _model(name: str, fields: Fields) -> Model:
    engine = EngineKind(fields.choice("engine", [kind.value for kind in EngineKind]))
    length = fields.integer("max_model_len", minimum=16)
    model = Model(
        name=name,
        engine=engine,
        max_model_len=length,
        limits=_limits(fields, length),
        speed=_speed(fields.section("step")),
        loading=fields.seconds("loading"),
        answer_tokens=fields.integer("answer_tokens", minimum=1),
        metrics=fields.flag("metrics", default=True),
        api_key=fields.text("api_key", default=None),
    )
    fields.refuse_unknown()
    return model


def _limits(fields: Fields, max_model_len: int) -> Limits:
    slots = fields.integer("slots", minimum=1)
    kv = fields.section("kv_cache")
    block_size = kv.integer("block_size", default=16, minimum=1)
    longest = -(-max_model_len // block_size)
    blocks = kv.integer("blocks", default=slots * longest, minimum=1)
    if blocks < longest:
        raise kv.wrong("blocks", f"at least {longest}, so that one request of max_model_len fits", blocks)
    kv.refuse_unknown()
    return Limits(
        slots=slots,
        blocks=blocks,
        block_size=block_size,
        queued_requests=fields.integer("max_queued_requests", default=0, minimum=0) or None,
        queued_tokens=fields.integer("max_queued_tokens", default=0, minimum=0) or None,
    )


def _speed(fields: Fields) -> Speed:
    speed = Speed(
        base=fields.seconds("base", above_zero=True),
        per_sequence=fields.seconds("per_sequence"),
        per_prefill_token=fields.seconds("per_prefill_token"),
        prefill_tokens_per_step=fields.integer("prefill_tokens", minimum=1),
    )
    fields.refuse_unknown()
    return speed


def _replica(fields: Fields, models: dict[str, Model]) -> ReplicaSpec:
    replica = ReplicaSpec(
        name=fields.name("name"),
        model=models[fields.choice("model", list(models))],
        port=fields.integer("port", minimum=0, maximum=65535),
        seed=fields.integer("seed", default=0, minimum=0),
    )
    fields.refuse_unknown()
    return replica


def _traffic(name: str, fields: Fields, models: dict[str, Model]) -> Traffic:
    if name not in models:
        raise fields.wrong("", f"one of the models {', '.join(models)}", name)
    prefix = fields.section("shared_prefix")
    burst = fields.section("burst")
    traffic = Traffic(
        model=name,
        rate=fields.number("rate", minimum=0.0),
        swing=fields.number("swing", default=0.0, minimum=0.0, maximum=1.0),
        swing_period=fields.seconds("swing_period", default="10m", above_zero=True),
        burst_size=burst.integer("size", default=0, minimum=0),
        burst_every=burst.seconds("every", default="1m", above_zero=True),
        prompt_tokens=fields.integer("prompt_tokens", minimum=1),
        max_tokens=fields.integer("max_tokens", minimum=1),
        shared_prefix_share=prefix.number("share", default=0.0, minimum=0.0, maximum=1.0),
        shared_prefix_tokens=prefix.integer("tokens", default=0, minimum=0),
        timeout=fields.seconds("timeout", default="60s", above_zero=True),
    )
    longest = models[name].max_model_len
    if traffic.max_tokens >= longest:
        raise fields.wrong("max_tokens", f"less than max_model_len ({longest})", traffic.max_tokens)
    for section in (prefix, burst, fields):
        section.refuse_unknown()
    return traffic


def _refuse_repeats(replicas: tuple[ReplicaSpec, ...], source: str) -> None:
    names: set[str] = set()
    ports: set[int] = set()
    for index, replica in enumerate(replicas):
        if replica.name in names:
            raise ConfigError(
                f"{source}: replicas[{index}].name: {replica.name!r} is taken; every replica needs its own"
            )
        if replica.port and replica.port in ports:
            raise ConfigError(f"{source}: replicas[{index}].port: {replica.port} is taken; every replica needs its own")
        names.add(replica.name)
        ports.add(replica.port)
