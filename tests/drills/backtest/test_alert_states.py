"""Alert states: what Prometheus' rule manager makes of samples that come and go."""

import pytest

from drills.backtest.alert_states import Firing, replay


@pytest.mark.parametrize(
    ("claim", "delay", "keep", "present", "firings"),
    [
        ("without `for` the first sample fires", 0, 0, {20, 30}, [(20, 20, 40)]),
        ("`for` starts at the first sample", 20, 0, {10, 20, 30, 40}, [(10, 30, 50)]),
        ("a gap while pending starts anew", 20, 0, {10, 20, 40, 50, 60}, [(40, 60, 70)]),
        ("a sample just short of `for` never fires", 20, 0, {10, 20}, []),
        ("it keeps firing over a gap", 0, 20, {10, 30}, [(10, 10, 60)]),
        ("it resolves when it was kept long enough", 0, 20, {10}, [(10, 10, 40)]),
        ("nothing is kept while pending", 20, 50, {10, 30}, []),
        ("it fires twice", 0, 0, {10, 40}, [(10, 10, 20), (40, 40, 50)]),
        ("it still fires at the end", 0, 0, {70}, [(70, 70, None)]),
    ],
)
def test_samples_become_states(
    claim: str, delay: float, keep: float, present: set[float], firings: list[tuple[float, float, float | None]]
) -> None:
    moments = range(0, 80, 10)
    found = list(replay(moments, present, delay, keep))
    assert found == [Firing(pending=p, firing=f, resolved=r) for p, f, r in firings], claim
