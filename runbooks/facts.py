"""Facts: the generated block of each runbook, and the index. In: alerts, a `Fleet`, the pages; out: {path: text}.

Everything outside the markers is written by hand and stays as it is. An alert that has no page yet gets one with empty
sections, which a test then wants filled.
"""

from pathlib import Path

from alerts.catalogue import ALERTS
from alerts.model import Alert, AlertRule, Severity
from exporter.fleet import Fleet
from exporter.objectives import LatencyObjective, RatioObjective
from prometheus.deployment import Deployment
from prometheus.partition import partition
from prometheus.promql import number_text
from prometheus.windows import duration_text

__all__ = ["BEGIN", "END", "SECTIONS", "artefacts"]

BEGIN = "<!-- facts: written by `make generate` from fleet.yml and alerts/, edits here are lost -->"
END = "<!-- /facts -->"
SECTIONS = ("Meaning", "Impact", "Diagnosis", "Mitigation", "Verify")

_ROOT = Path(__file__).resolve().parent.parent
_INDEX = "runbooks/README.md"


def artefacts(fleet: Fleet, deployment: Deployment) -> dict[str, str]:
    """Return the pages with fresh facts: path from the root -> text."""
    return {
        _INDEX: _fresh(_text(_INDEX, "Runbooks"), _index()),
        **{
            alert.runbook: _fresh(_text(alert.runbook, alert.name, *SECTIONS), _facts(alert, fleet, deployment))
            for alert in ALERTS
        },
    }


def _text(path: str, title: str, *sections: str) -> str:
    """Return the page as it is, or a new one."""
    page = _ROOT / path
    if page.is_file():
        return page.read_text(encoding="utf-8")
    parts = (f"# {title}", *(f"## {section}" for section in sections), "## Facts", f"{BEGIN}\n{END}")
    return "\n\n".join(parts) + "\n"


def _fresh(page: str, facts: str) -> str:
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{page.splitlines()[0]}: the page has no place for its facts; add {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{facts}\n\n{END}{after}"


def _index() -> str:
    """List the alerts, the most urgent first."""
    urgency = list(Severity)
    rows = (
        f"| [{alert.name}]({Path(alert.runbook).name}) | {_severities(alert)} | {alert.meaning} |"
        for alert in sorted(ALERTS, key=lambda alert: urgency.index(alert.severities[0]))
    )
    return "\n".join(["| alert | severity | fires when |", "| --- | --- | --- |", *rows])


def _facts(alert: Alert, fleet: Fleet, deployment: Deployment) -> str:
    rows = {
        "severity": _severities(alert),
        "objective": _objective(alert, fleet),
        "board": _board(alert, deployment.addresses.boards),
        "drill": _drill(alert),
        "quiet while": _quiet_while(alert),
    }
    table = ["| | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows.items() if value)]
    return "\n".join([alert.meaning, "", *table, *_rules(alert, fleet)])


def _rules(alert: Alert, fleet: Fleet) -> list[str]:
    if not alert.needed(fleet):
        return ["\nWith this fleet.yml there is nothing that it could tell, so it is not installed."]
    return [_expression(rule, fleet) for rule in alert.rules]


def _board(alert: Alert, boards: str | None) -> str:
    return f"[{alert.board}]({boards}/d/{alert.board})" if boards else ""


def _severities(alert: Alert) -> str:
    return ", ".join(rule.severity.value for rule in alert.rules)


def _objective(alert: Alert, fleet: Fleet) -> str:
    if alert.slo is None:
        return ""
    slo = alert.slo
    default, *others = partition(fleet.slos, lambda objectives: _promise(slo, getattr(objectives, slo)))
    exceptions = "".join(f"; {', '.join(part.matchers[0].values)}: {part.value}" for part in others)
    return f"{default.value}, over {duration_text(fleet.slos.window)}{exceptions}"


def _promise(slo: str, objective: LatencyObjective | RatioObjective) -> str:
    share = f"{number_text(objective.objective * 100)}% of requests"
    if isinstance(objective, LatencyObjective):
        return f"{share} within {duration_text(objective.threshold)}"
    return f"{share} {'meet every objective' if slo == 'goodput' else 'get an answer'}"


def _quiet_while(alert: Alert) -> str:
    """Name the alerts that make this one superfluous, as links."""
    return ", ".join(
        f"[{each.alertname}]({each.alertname}.md) pages"
        + (f" about the same {' and '.join(label.name for label in each.labels)}" if each.labels else "")
        for each in alert.quiet_while
    )


def _drill(alert: Alert) -> str:
    """Return the command of the drill, found by its file as drills are."""
    if alert.drill is None or not (_ROOT / "drills" / f"{alert.drill.replace('-', '_')}.py").is_file():
        return ""
    return f"`.venv/bin/python -m drills run {alert.drill}`"


_DOES = {
    Severity.PAGE: "pages",
    Severity.TICKET: "opens a ticket",
    Severity.HEARTBEAT: "sends the heartbeat",
    Severity.NOTE: "is noted",
}


def _expression(rule: AlertRule, fleet: Fleet) -> str:
    fence = f"```promql\n{rule.expression(fleet).text()}\n```"
    when = "while this query returns anything"
    if rule.delay:
        when = f"once this query has returned something for {duration_text(rule.delay)}, and while it does"
    keep = f"\n\nIt stays for {duration_text(rule.keep)} after that." if rule.keep else ""
    return f"\nIt {_DOES[rule.severity]} {when}:\n\n{fence}{keep}"
