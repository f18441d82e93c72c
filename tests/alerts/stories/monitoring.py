"""Stories of `alerts/groups/monitoring.py`."""

from collections.abc import Mapping

from alerts.model import Severity
from tests.alerts.stories.lines import GONE, NOTHING, Lines, Sample, counter, gauge
from tests.alerts.stories.situations import Situation, Story

STAGES = ("alerts-monitoring",)
NO_REQUESTS = {
    Situation.NO_TRAFFIC: "it does not depend on requests",
    Situation.REBUCKETED: "no bucket of a histogram is read",
}
ONLY_GAUGES = {**NO_REQUESTS, Situation.RESET: "gauges do not count"}
ITSELF = {'up{job="prometheus",instance="prometheus:9090"}': gauge((120, 1))}


def up(job: str, down: int, of: int, count: int = 60) -> Lines:
    """Let some of the targets of a job fail after ten minutes."""
    return {
        f'up{{job="{job}",replica="{i}",instance="{i}"}}': gauge((60, 1), (count, int(i >= down))) for i in range(of)
    }


def known(replicas: int) -> Lines:
    return {"llm_fleet_replicas{}": gauge((120, replicas))}


def blind(job: str, fleet: Lines, below: Mapping[str, Lines]) -> Story:
    return Story(
        alert="LLMMonitoringBlind",
        severity=Severity.PAGE,
        labels="",
        trouble=up(job, 5, 9) | fleet,
        below={"four of nine": up(job, 4, 9), **below},
        clear=up(job, 8, 9),
        well=up(job, 1, 9),
        fires=644,
        stages=STAGES,
        middle=61,
        over=60,
        evaluate=7,
        cannot=ONLY_GAUGES,
    )


def failing(name: str, *phases: tuple[int, float], labels: str = "") -> Lines:
    return {f"{name}{labels}": counter(*phases, start=3)}


def dropped(*phases: tuple[int, float]) -> Lines:
    return failing("prometheus_notifications_dropped_total", *phases, labels="{}")


def stored(failures: float, count: int = 200) -> Lines:
    names = ("head_truncations_failed", "reloads_failures", "wal_corruptions", "wal_truncations_failed")
    others = {f"prometheus_tsdb_{name}_total{{}}": gauge((30 + count, 0)) for name in (*names, "wal_writes_failed")}
    return others | failing(
        "prometheus_tsdb_compactions_failed_total", (30, 0), (1, failures), (count - 1, 0), labels="{}"
    )


RULES = '{rule_group="a"}'
MISSED, FAILED = (f"prometheus_rule_{name}_total" for name in ("group_iterations_missed", "evaluation_failures"))


def discovered(*phases: tuple[int, Sample]) -> Lines:
    return {"prometheus_notifications_alertmanagers_discovered{}": gauge(*phases)}


def of_instance(up_after: int) -> Lines:
    return {'up{job="alertmanager",instance="@"}': gauge((60, 1), (90, up_after))}


def nobody_left(answers: tuple[int, ...], leave: int = 60) -> Lines:
    """Let every target leave with sample `leave`, while the exporter answers in turns."""
    shrunk = 'ALERTS{alertname="LLMFleetShrunk",alertstate="pending",model="m"}'
    replica = gauge((60, 1))
    left = {'up{job="replicas",replica="a"}': (*replica[:leave], GONE) if leave else replica * 2}
    left |= {shrunk: gauge((60, NOTHING), (60, 1))}
    return left | {'up{job="exporter",instance="a"}': answers * (120 // len(answers))}


STORIES = (
    Story(
        alert="LLMMonitoringBlind",
        severity=Severity.PAGE,
        labels="",
        trouble=nobody_left((1, 1, 0)),
        below={"the exporter hardly answers": nobody_left((1, 0)), "a replica stays": nobody_left((1,), leave=0)},
        clear=nobody_left((1,)),
        well=nobody_left((1,), leave=0),
        fires=672,
        stages=("load", *STAGES),
        middle=40,
        over=0,
        evaluate=7,
        cannot={**ONLY_GAUGES, Situation.GONE: "it is what it is about"},
    ),
    blind("exporter", {}, {}),
    blind("replicas", known(9), {"half of those that are left answer": up("replicas", 5, 9) | known(8)}),
    Story(
        alert="LLMMonitoringBlind",
        severity=Severity.PAGE,
        labels="",
        trouble=ITSELF | {'up{job="exporter",instance="a"}': gauge((60, 1), (1, GONE))},
        below={"it is there": ITSELF | {'up{job="exporter",instance="a"}': gauge((120, 1))}},
        fires=644,
        stages=STAGES,
        middle=30,
        over=40,
        evaluate=7,
        cannot={**ONLY_GAUGES, Situation.NO_NUMBERS: "whether a target answers is Prometheus' own number"},
    ),
    Story(
        alert="LLMFleetReloadFailed",
        labels="",
        trouble={'llm_exporter_fleet_reload_success{job="exporter",instance="a"}': gauge((60, 1), (60, 0))},
        below={"accepted": {'llm_exporter_fleet_reload_success{job="exporter",instance="a"}': gauge((120, 1))}},
        fires=770,
        stages=STAGES,
        middle=66,
        over=120,
        cannot=ONLY_GAUGES,
    ),
    Story(
        alert="LLMScrapeSlow",
        labels='replica="@"',
        trouble={'llm_replica_scrape_duration_seconds{replica="@"}': gauge((60, 0), (180, 5.5))},
        below={"4.5 seconds": {'llm_replica_scrape_duration_seconds{replica="@"}': gauge((240, 4.5))}},
        fires=1785,
        stages=STAGES,
        middle=100,
        over=800,
        cannot=ONLY_GAUGES,
    ),
    Story(
        alert="LLMRulesFailing",
        labels="",
        trouble=failing(FAILED, (60, 0), (1, 1), (80, 0), labels=RULES),
        below={"none": failing(FAILED, (141, 0), labels=RULES)},
        fires=945,
        stages=STAGES,
        middle=80,
        over=1000,
        cannot=NO_REQUESTS,
    ),
    Story(
        alert="LLMRulesFailing",
        labels="",
        trouble=failing(MISSED, (60, 0), (140, 0.06), labels=RULES),
        below={"4.5 within a quarter of an hour": failing(MISSED, (200, 0.05), labels=RULES)},
        clear=failing(MISSED, (60, 0), (140, 0.5), labels=RULES),
        fires=1750,
        stages=STAGES,
        middle=90,
        over=1000,
        cannot=NO_REQUESTS,
    ),
    Story(
        alert="LLMNotificationsFailing",
        labels='integration="@"',
        trouble=failing(
            "alertmanager_notifications_failed_total", (60, 0), (3, 1), (80, 0), labels='{integration="@"}'
        ),
        below={"none": failing("alertmanager_notifications_failed_total", (143, 0), labels='{integration="@"}')},
        fires=945,
        stages=STAGES,
        middle=70,
        over=2000,
        cannot=NO_REQUESTS,
    ),
    Story(
        alert="LLMNotificationsFailing",
        labels="",
        trouble=dropped((60, 0), (80, 1)),
        below={"none": dropped((140, 0)), "once, as in a restart": dropped((60, 0), (3, 1), (77, 0))},
        fires=945,
        stages=STAGES,
        middle=70,
        over=2000,
        cannot=NO_REQUESTS,
    ),
    Story(
        alert="LLMAlertmanagerMissing",
        labels='instance="@"',
        trouble=of_instance(0),
        below={"it answers": of_instance(1)},
        fires=875,
        stages=STAGES,
        middle=66,
        over=200,
        cannot=ONLY_GAUGES,
    ),
    Story(
        alert="LLMAlertmanagerMissing",
        labels="",
        trouble=discovered((60, 1), (60, 0)),
        below={"one": discovered((120, 1))},
        fires=770,
        stages=STAGES,
        middle=66,
        over=200,
        cannot=ONLY_GAUGES,
    ),
    Story(
        alert="LLMPrometheusStorage",
        labels="",
        trouble=stored(1),
        below={"nothing fails": stored(0)},
        fires=630,
        stages=STAGES,
        middle=40,
        over=3700,
        cannot=NO_REQUESTS,
    ),
)
