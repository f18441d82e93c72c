"""Alerts about the monitoring itself, in promtool."""

from pathlib import Path

from exporter.fleet import Fleet, Replica
from running.tools import Tool
from tests.prometheus.promtool import Case, Expect, Rules, run, samples

RULES = Rules(fleet=Fleet(replicas=(Replica(name="a", url="http://127.0.0.1:8000"),)), stages=("alerts-monitoring",))
ITSELF = 'up{job="prometheus",instance="prometheus:9090"}'
EXPORTER = 'up{job="exporter",instance="exporter:9801"}'
KNOWN = {"llm_spare_replicas": "1x200", 'llm_fleet_replicas{model="m"}': "5x200"}


def up(*replicas: str) -> dict[str, str]:
    """Write `up` of replicas, scrape by scrape."""
    return {f'up{{job="replicas",replica="{index}"}}': values for index, values in enumerate(replicas)}


def fires(at: str, alertname: str, *labels: str, severity: str = "ticket") -> Expect:
    series = f'ALERTS{{alertname="{alertname}",alertstate="firing"'
    expected = {f'{series},severity="{severity}"{each}}}': 1.0 for each in labels}
    return Expect(at=at, expr=f"{series}}}", samples=expected)


def blind(at: str) -> Expect:
    return fires(at, "LLMMonitoringBlind", "", severity="page")


def sees(*moments: str) -> list[Expect]:
    return [fires(at, "LLMMonitoringBlind", severity="page") for at in moments]


BLIND_CASES = [
    Case(
        claim="the exporter is killed: the page comes within 50 seconds, and is over with the first good scrapes",
        series={EXPORTER: "1x60 0x60 1x60"} | up("1x60 0x60 1x60", "1x60 0x60 1x60"),
        expect=[*sees("10m5s", "10m25s"), blind("10m55s"), blind("20m"), *sees("20m45s")],
    ),
    Case(
        claim="three of five replicas cannot be scraped through an exporter that answers for itself",
        series={EXPORTER: "1x180"} | KNOWN | up(*["1x60 0x60 1x60"] * 3, *["1x180"] * 2),
        expect=[*sees("10m"), blind("11m15s"), *sees("21m")],
    ),
    Case(
        claim="three of five leave the fleet: the exporter does not know them any more, and their last scrapes fail",
        series={EXPORTER: "1x180"}
        | KNOWN
        | {'llm_fleet_replicas{model="m"}': "5x60 2x120"}
        | up(*["1x60 0x5 stale"] * 3, *["1x180"] * 2),
        expect=sees(*(f"{second}s" for second in range(580, 800, 10))),
    ),
    Case(
        claim="all five cannot be scraped while the exporter answers for itself, but for one time in four",
        series={EXPORTER: "1x60 " + "1 1 1 0 " * 15}
        | {
            name: f"{values[0]}x60 " + f"{values[0]} {values[0]} {values[0]} stale " * 15
            for name, values in KNOWN.items()
        }
        | up(*["1x60 0x60"] * 5),
        expect=[blind(f"{second}s") for second in range(680, 1200, 10)],
    ),
    Case(
        claim="two of five are not most",
        series={EXPORTER: "1x180"} | KNOWN | up(*["1x60 0x120"] * 2, *["1x180"] * 3),
        expect=sees("11m", "15m", "29m"),
    ),
    Case(
        claim="one failed scrape in four, and an exporter that restarts, blind nobody",
        series={EXPORTER: "1 1 1 0 " * 30 + "1x30 0 1x60"} | up("1 1 1 0 " * 30, "1x30 0 1x150"),
        expect=sees(*(f"{second}s" for second in range(60, 1800, 10))),
    ),
    Case(claim="nobody scrapes an exporter at all", series=up("1x60") | {ITSELF: "1x60"}, expect=[blind("5m")]),
    Case(claim="Prometheus has just started and scraped nobody yet", series={}, expect=sees("30s", "1m", "5m")),
    Case(
        claim="the exporter is taken out of the configuration by mistake",
        series={EXPORTER: "1x60 stale", ITSELF: "1x120"} | up("1x60 stale"),
        expect=[*sees("9m"), blind("11m30s")],
    ),
    Case(
        claim="a fleet without replicas yet is seen",
        series={EXPORTER: "1x60"},
        expect=sees("5m"),
    ),
]

TICKET_CASES = [
    Case(
        claim="a refused fleet.yml",
        series={'llm_exporter_fleet_reload_success{job="exporter",instance="a"}': "1x60 0x60 1x60"},
        expect=[
            fires("11m50s", "LLMFleetReloadFailed"),
            fires("12m30s", "LLMFleetReloadFailed", ""),
            fires("20m30s", "LLMFleetReloadFailed"),
        ],
    ),
    Case(
        claim="a replica that answers scrapes in six seconds, one in four, and one that needs a tenth",
        series={
            'llm_replica_scrape_duration_seconds{replica="slow"}': "6x180",
            'llm_replica_scrape_duration_seconds{replica="now and then"}': "0.1 0.1 0.1 9.5 " * 45,
            'llm_replica_scrape_duration_seconds{replica="fast"}': "0.1x180",
        },
        expect=[
            fires("9m", "LLMScrapeSlow"),
            fires("11m", "LLMScrapeSlow", ',replica="slow"'),
            fires("29m", "LLMScrapeSlow", ',replica="slow"'),
        ],
    ),
    Case(
        claim="one failed evaluation is told, and forgotten a quarter of an hour later",
        series={
            'prometheus_rule_evaluation_failures_total{rule_group="a"}': samples((60, 0), (1, 1), (240, 0)),
            'prometheus_rule_group_iterations_missed_total{rule_group="a"}': samples((300, 0)),
        },
        expect=[
            fires("9m", "LLMRulesFailing"),
            fires("16m", "LLMRulesFailing", ""),
            fires("27m", "LLMRulesFailing"),
        ],
    ),
    Case(
        claim="groups that take longer than their interval, and a counter that starts again",
        series={
            'prometheus_rule_group_iterations_missed_total{rule_group="a"}': f"{samples((60, 1))} {samples((60, 0))}",
        },
        expect=[fires("10m", "LLMRulesFailing", ""), fires("19m", "LLMRulesFailing", "")],
    ),
    Case(
        claim="four evaluations left out are a busy moment",
        series={'prometheus_rule_group_iterations_missed_total{rule_group="a"}': samples((60, 0), (4, 1), (120, 0))},
        expect=[fires(f"{minute}m", "LLMRulesFailing") for minute in range(1, 30)],
    ),
    Case(
        claim="a receiver that cannot be reached is told by its kind, alerts that reach no Alertmanager without one",
        series={
            'alertmanager_notifications_failed_total{integration="slack",reason="other"}': samples((60, 0), (3, 1)),
            'alertmanager_notifications_failed_total{integration="webhook",reason="other"}': samples((120, 0)),
            "prometheus_notifications_dropped_total": samples((90, 0), (60, 2)),
        },
        expect=[
            fires("10m", "LLMNotificationsFailing"),
            fires("16m", "LLMNotificationsFailing", ',integration="slack"'),
            fires("21m", "LLMNotificationsFailing", ',integration="slack"', ""),
        ],
    ),
    Case(
        claim="one of two Alertmanagers does not answer for minutes; the other one fails now and then",
        series={
            'up{job="alertmanager",instance="a"}': "1x60 0x60 1x60",
            'up{job="alertmanager",instance="b"}': "1 1 1 0 " * 45,
        },
        expect=[
            fires("13m30s", "LLMAlertmanagerMissing"),
            fires("14m30s", "LLMAlertmanagerMissing", ',instance="a"'),
            fires("20m30s", "LLMAlertmanagerMissing"),
        ],
    ),
    Case(
        claim="Prometheus knows of no Alertmanager",
        series={"prometheus_notifications_alertmanagers_discovered": "0x60"},
        expect=[fires("1m", "LLMAlertmanagerMissing"), fires("3m", "LLMAlertmanagerMissing", "")],
    ),
    Case(
        claim="a compaction that fails once is told for an hour",
        series={
            f"prometheus_tsdb_{name}_total": samples((400, 0))
            for name in (
                *("head_truncations_failed", "reloads_failures", "wal_corruptions"),
                *("wal_truncations_failed", "wal_writes_failed"),
            )
        }
        | {"prometheus_tsdb_compactions_failed_total": samples((30, 0), (1, 1), (400, 0))},
        expect=[
            fires("4m", "LLMPrometheusStorage"),
            fires("12m", "LLMPrometheusStorage", ""),
            fires("67m", "LLMPrometheusStorage"),
        ],
    ),
    Case(
        claim="nothing that can be scraped, nothing that fails",
        series={},
        expect=[
            fires("1h", name)
            for name in (
                *("LLMFleetReloadFailed", "LLMScrapeSlow", "LLMRulesFailing", "LLMNotificationsFailing"),
                *("LLMAlertmanagerMissing", "LLMPrometheusStorage"),
            )
        ],
    ),
]


def test_who_cannot_see_pages(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, RULES, BLIND_CASES)


def test_what_makes_the_monitoring_unreliable_brings_a_ticket(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, RULES, TICKET_CASES)
