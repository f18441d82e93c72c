"""A fleet that uses everything rules depend on. `python -m tests.prometheus.fleets` rewrites the goldens."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

from alerts.render import artefacts as alert_files
from exporter.fleet import Fleet, ModelPolicy, Replica
from exporter.objectives import LatencyObjective, Objectives, RatioObjective, Slos
from prometheus.deployment import Deployment
from prometheus.render import artefacts as prometheus_files

GOLDEN = Path(__file__).parent / "golden"


def _latency(milliseconds: int, objective: str) -> LatencyObjective:
    return LatencyObjective(threshold=timedelta(milliseconds=milliseconds), objective=Decimal(objective))


MIXED = Fleet(
    replicas=(
        Replica(name="a", url="http://10.0.0.1:8000", model="org/a&b"),
        Replica(name="b", url="http://10.0.0.2:8000"),
    ),
    slos=Slos(
        window=timedelta(days=28),
        models={
            "org/a&b": Objectives(ttft=_latency(800, "0.999"), itl=_latency(50, "0.9")),
            'quo"te': Objectives(ttft=_latency(800, "0.99")),
            "strict": Objectives(availability=RatioObjective(objective=Decimal("0.9999"))),
        },
    ),
    models={"batch-70b": ModelPolicy(min_ready=0), "org/a&b": ModelPolicy(min_ready=1)},
)
"""Thresholds and objectives of several values, names that need quoting, a model that may scale to zero."""


def rule_files() -> dict[str, str]:
    """Generate the rule files of the mixed fleet: name -> text."""
    files = {**prometheus_files(MIXED, Deployment()), **alert_files(MIXED, Deployment())}
    return {Path(path).name: text for path, text in files.items() if "/rules/" in path}


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name, text in rule_files().items():
        (GOLDEN / name).write_text(text, encoding="utf-8")
