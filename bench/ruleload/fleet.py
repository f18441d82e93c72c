"""The fleet: 20 models, some with objectives of their own, on many replicas. In: sizes. Out: a `Fleet`."""

from datetime import timedelta
from decimal import Decimal

from exporter.fleet import Fleet, Replica
from exporter.objectives import LatencyObjective, Objectives, RatioObjective, Slos

__all__ = ["fleet"]

_STRICT = Objectives(
    ttft=LatencyObjective(threshold=timedelta(milliseconds=800), objective=Decimal("0.99")),
    itl=LatencyObjective(threshold=timedelta(milliseconds=50), objective=Decimal("0.99")),
    availability=RatioObjective(objective=Decimal("0.999")),
)
_LOOSE = Objectives(availability=RatioObjective(objective=Decimal("0.9")))


def fleet(replicas: int, models: int) -> Fleet:
    """Spread replicas over models evenly; every fifth model is promised more, another fifth less."""
    names = [f"model-{number:02d}" for number in range(models)]
    own = {name: (_STRICT, _LOOSE)[number % 5] for number, name in enumerate(names) if number % 5 < 2}  # noqa: PLR2004
    return Fleet(
        replicas=tuple(
            Replica(name=f"replica-{number:04d}", url="http://127.0.0.1", model=names[number % models], engine="vllm")
            for number in range(replicas)
        ),
        slos=Slos(models=own),
        spare_replicas=1,
    )
