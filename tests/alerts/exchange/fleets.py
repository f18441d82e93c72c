"""Fleets with any objectives that fleet.yml can hold: strategies for hypothesis."""

from datetime import timedelta
from decimal import Decimal

from hypothesis import strategies as st

from exporter.fleet import Fleet, Replica
from exporter.objectives import LatencyObjective, Objectives, RatioObjective, Slos

__all__ = ["fleets", "models"]

_shares = st.integers(1, 8).flatmap(
    lambda places: st.integers(10 ** (places - 1), 10**places - 1).map(
        lambda part: (Decimal(part) / 10**places).normalize()
    )
)
_thresholds = st.integers(1, 10_000_000).map(lambda milliseconds: timedelta(milliseconds=milliseconds))
_windows = st.integers(24 * 60, 400 * 24 * 60).map(lambda minutes: timedelta(minutes=minutes))
_latencies = st.builds(LatencyObjective, threshold=_thresholds, objective=_shares)
_ratios = st.builds(RatioObjective, objective=_shares)
_objectives = st.builds(Objectives, ttft=_latencies, itl=_latencies, availability=_ratios, goodput=_ratios)

models = st.one_of(
    st.sampled_from(["qwen3-8b", "Org/Model.v1", "org/model.v1", "yes", "1.0", "null", "every-other-model", "default"]),
    st.text(min_size=1, max_size=80).filter(lambda name: name.strip() != "" and name.isprintable()),
)
"""Names as engines tell them: any printable text."""

_slos = st.builds(Slos, window=_windows, default=_objectives, models=st.dictionaries(models, _objectives, max_size=4))


def _fleet(slos: Slos, served: list[str]) -> Fleet:
    replicas = tuple(
        Replica(name=f"r{number}", url=f"http://10.0.0.{number}", model=model) for number, model in enumerate(served)
    )
    return Fleet(replicas=replicas, slos=slos)


fleets = st.builds(_fleet, _slos, st.lists(models, max_size=3))
