"""The faults a replica can be given, with their parameters: names and values in, a checked fault or a sentence out."""

from collections.abc import Mapping
from dataclasses import dataclass

from simulator.config import EngineKind, Model


class FaultError(Exception):
    """A fault that cannot be given; the message lists what can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a fault; without a default it must be given."""

    name: str
    kind: type[float | int | str]
    default: float | str | None = None
    minimum: float = 0.0
    maximum: float = float("inf")

    def __str__(self) -> str:
        """Write it as the command line takes it."""
        return f"{self.name}={'…' if self.default is None else self.default}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultKind:
    """One thing that can be broken."""

    name: str
    help: str
    parameters: tuple[Parameter, ...] = ()
    engines: tuple[EngineKind, ...] = tuple(EngineKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault with its values; `name` is one of the kinds."""

    name: str
    values: Mapping[str, float | str]

    def number(self, name: str) -> float:
        """Give the value of a numeric parameter."""
        return float(self.values[name])

    def text(self, name: str) -> str:
        """Give the value of a text parameter."""
        return str(self.values[name])


_FACTOR_LIMIT = 10_000.0
KINDS = {
    kind.name: kind
    for kind in (
        FaultKind(name="kill", help="the process dies: the port closes, open connections are reset"),
        FaultKind(name="hang", help="the engine makes no step; /health stays 200, /metrics answers frozen values"),
        FaultKind(name="hang_metrics", help="/metrics accepts the request and never answers; requests are served"),
        FaultKind(
            name="slow_prefill",
            help="prompts are computed this many times slower; first tokens are late",
            parameters=(Parameter(name="factor", kind=float, default=30.0, minimum=1.0, maximum=_FACTOR_LIMIT),),
        ),
        FaultKind(
            name="slow_decode",
            help="tokens come this many times slower",
            parameters=(Parameter(name="factor", kind=float, default=6.0, minimum=1.0, maximum=_FACTOR_LIMIT),),
        ),
        FaultKind(name="full_queue", help="every new request is rejected (vLLM: 503, llama-server: 429)"),
        FaultKind(
            name="full_kv",
            help="only this many KV blocks are left: sequences preempt each other (0: what one request needs)",
            parameters=(Parameter(name="blocks", kind=int, default=0),),
            engines=(EngineKind.VLLM,),  # llama-server reserves a whole context per slot and never preempts
        ),
        FaultKind(
            name="loading",
            help="the replica restarts and loads its model for this long",
            parameters=(Parameter(name="seconds", kind=float, default=60.0),),
        ),
        FaultKind(
            name="rename_metric",
            help="one family has another name on /metrics, as after an upgrade",
            parameters=(Parameter(name="from", kind=str), Parameter(name="to", kind=str)),
        ),
        FaultKind(
            name="errors",
            help="this share of new requests ends with an error",
            parameters=(Parameter(name="share", kind=float, default=0.2, maximum=1.0),),
        ),
        FaultKind(
            name="stale_gauges",
            help="gauges keep their last value when the engine falls idle, as vLLM's do when all clients go",
            engines=(EngineKind.VLLM,),
        ),
    )
}


def parse_fault(name: str, given: Mapping[str, object], model: Model) -> Fault:
    """Check a fault and its parameters for a replica of this model."""
    kind = KINDS.get(name)
    possible = [other.name for other in KINDS.values() if model.engine in other.engines]
    if kind is None:
        raise FaultError(f"there is no fault {name!r}; there are {', '.join(possible)}")
    if model.engine not in kind.engines:
        raise FaultError(f"{model.engine.value} cannot have the fault {name}; it can have {', '.join(possible)}")
    known = [parameter.name for parameter in kind.parameters]
    for key in given:
        if key not in known:
            takes = ", ".join(map(str, kind.parameters)) or "no parameters"
            raise FaultError(f"{name} has no parameter {key!r}; it takes {takes}")
    values = {parameter.name: _value(name, parameter, given.get(parameter.name)) for parameter in kind.parameters}
    fault = Fault(name=name, values=values)
    return _fill_blocks(fault, model) if name == "full_kv" else fault


def _value(fault: str, parameter: Parameter, given: object) -> float | str:
    value = parameter.default if given is None else given
    if value is None:
        raise FaultError(f"{fault} needs the parameter {parameter.name!r}")
    if parameter.kind is str:
        if not isinstance(value, str) or not value:
            raise FaultError(f"{fault}: {parameter.name} must be text, got {value!r}")
        return value
    expected = f"{fault}: {parameter.name} must be a number from {parameter.minimum:g} to {parameter.maximum:g}"
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise FaultError(f"{expected}, got {value!r}")
    try:
        number = parameter.kind(value)
    except (ValueError, OverflowError):
        raise FaultError(f"{expected}, got {value!r}") from None
    if not isinstance(number, int | float) or not parameter.minimum <= number <= parameter.maximum:
        raise FaultError(f"{expected}, got {value!r}")
    return number


def _fill_blocks(fault: Fault, model: Model) -> Fault:
    least = -(-model.max_model_len // model.limits.block_size)
    blocks = int(fault.number("blocks")) or least
    if not least <= blocks <= model.limits.blocks:
        raise FaultError(
            f"full_kv: blocks must be from {least} (one longest request) to {model.limits.blocks}, got {blocks}"
        )
    return Fault(name=fault.name, values={"blocks": blocks})
