"""Runbooks: every alert has a page that is complete, fresh and true, and every page has an alert."""

import re
import shlex
import subprocess
import sys
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest
import yaml

from alerts.burnrate import BURN_RULES, factor, in_danger
from alerts.catalogue import ALERTS
from alerts.model import Alert, Severity
from drills.backtest.incidents import SHAPES
from exporter.fleet import load
from prometheus.deployment import Deployment
from prometheus.indicators import AVAILABILITY
from runbooks import facts
from running import services
from running.tools import Tool
from tests.dashboards.generated import BOARDS
from tests.dashboards.series import known_series, series_of, unparsed
from tests.runbooks.pages import PAGES, ROOT, Page

INDEX = PAGES["README"]
PROCEDURES = {name: page for name, page in PAGES.items() if name.islower()}
PICTURES = {path.name: path.read_bytes() for path in sorted((ROOT / "runbooks" / "pictures").iterdir())}
PHONE_KILOBYTES = 60
OF_ALERTS = {name: page for name, page in PAGES.items() if page is not INDEX and name not in PROCEDURES}
FOREIGN = ("alertmanager_", "prometheus_")
SHORTEST_SECTION = 40

every_page = pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
every_alert_page = pytest.mark.parametrize("page", OF_ALERTS.values(), ids=OF_ALERTS)


def fresh() -> dict[str, str]:
    return facts.artefacts(load(ROOT / "fleet.yml"), Deployment())


@cache
def helps(module: str, action: str) -> str:
    command = [sys.executable, "-m", module, action, "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def test_every_alert_has_a_page_and_every_page_an_alert() -> None:
    assert set(OF_ALERTS) == {alert.name for alert in ALERTS}


def test_the_index_names_every_page() -> None:
    assert {f"{name}.md" for name in (*OF_ALERTS, *PROCEDURES)} <= set(INDEX.links())


def test_the_index_names_pages_first_then_tickets() -> None:
    urgent = [severity.split(",")[0] for severity in re.findall(r"^\| \[.*?\| ([a-z, ]+) \|", INDEX.text, re.MULTILINE)]
    assert len(urgent) == len(ALERTS)
    assert list(dict.fromkeys(urgent)) == ["page", "ticket", "heartbeat", "note"]
    assert urgent == sorted(urgent, key=["page", "ticket", "heartbeat", "note"].index)


def test_the_table_of_budgets_says_what_the_rules_ask() -> None:
    fleet = load(ROOT / "fleet.yml")
    asked = {severity: in_danger(AVAILABILITY, severity, fleet).text() for severity in (Severity.PAGE, Severity.TICKET)}
    rows = re.findall(
        r"^\| (\d+)% \| (\w+) \| at ([\d.]+) over (\w+) \| (\w+) \| ([\d.]+) \|$", INDEX.text, re.MULTILINE
    )
    assert len(rows) == len(BURN_RULES)
    for (share, long, pace, short, severity, rate), rule in zip(rows, BURN_RULES, strict=True):
        assert (Decimal(share) / 100, long, short) == (rule.share, rule.long.name, rule.short.name)
        assert Decimal(rate) == factor(rule, fleet.slos.window, Decimal("0.999"))
        assert f'model:llm_slo_burn:rate{short}{{slo="availability"}} > {pace}\n' in asked[Severity(severity)]


@every_alert_page
def test_every_section_is_there_and_filled(page: Page) -> None:
    sections = page.sections()
    assert tuple(sections) == (*facts.SECTIONS, "Facts")
    assert not [name for name, text in sections.items() if len(text) < SHORTEST_SECTION]


def test_the_facts_are_fresh() -> None:
    with_facts = {f"runbooks/{name}.md": page.text for name, page in PAGES.items() if name not in PROCEDURES}
    assert fresh() == with_facts


def test_an_alert_without_a_page_gets_one_to_fill_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "_ROOT", tmp_path)
    [text] = [text for path, text in fresh().items() if path == "runbooks/LLMModelDown.md"]
    page = Page(name="LLMModelDown", text=text)
    assert text.startswith("# LLMModelDown\n")
    assert [name for name, section in page.sections().items() if section] == ["Facts"]


def test_a_page_without_a_place_for_its_facts_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runbooks").mkdir()
    (tmp_path / "runbooks" / "README.md").write_text("# Runbooks\n")
    monkeypatch.setattr(facts, "_ROOT", tmp_path)
    with pytest.raises(ValueError, match="# Runbooks: the page has no place for its facts"):
        fresh()


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_the_board_of_an_alert_exists(alert: Alert) -> None:
    assert alert.board in {board["uid"] for board in BOARDS.values()}


def test_every_promql_block_parses(promtools: Tool, tmp_path: Path) -> None:
    expressions = [block for page in PAGES.values() for block in page.blocks("promql")]
    assert unparsed(promtools, expressions, tmp_path) == ""


@every_page
def test_promql_names_series_that_exist(page: Page) -> None:
    for block in page.blocks("promql"):
        ours = {name for name in series_of(block) if not name.startswith(FOREIGN)}
        assert ours <= known_series(), block


@every_page
def test_every_link_leads_somewhere(page: Page) -> None:
    for link in page.links():
        path, _, anchor = link.partition("#")
        if path.endswith(".png"):
            assert (ROOT / "runbooks" / path).is_file(), link
            continue
        target = PAGES.get(Path(path).stem) if path else page
        assert target is not None, link
        headings = {heading.lower().replace(" ", "-") for heading in target.sections()}
        assert not anchor or anchor in headings, link


def test_there_is_a_picture_of_every_shape_of_incident_on_one_page() -> None:
    assert set(PICTURES) == {f"{shape.replace(' ', '-')}.png" for shape in SHAPES}
    assert {f"pictures/{name}" for name in PICTURES} <= set(PAGES["incidents"].links())


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_small_enough_for_a_phone_in_a_lift(name: str) -> None:
    picture = PICTURES[name]
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    assert len(picture) < PHONE_KILOBYTES * 1000


@every_page
def test_every_module_that_is_called_has_such_a_command(page: Page) -> None:
    for command in page.commands():
        for module, action in re.findall(r"python -m (\w+) (\w+)", command):
            assert helps(module, action) == "", command


@every_page
def test_shell_blocks_are_shell(page: Page) -> None:
    for block in page.blocks("sh"):
        done = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert shlex.split(block, comments=True)


def test_the_token_for_drains_is_made_for_nobody_else_to_read(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    made = next(PAGES["drain"].blocks("sh"))
    subprocess.run(["bash", "-ec", f"umask 022\n{made}"], cwd=tmp_path, check=True)
    token = tmp_path / "secrets/admin-token"
    assert len(token.read_text().strip()) > SHORTEST_SECTION
    assert token.stat().st_mode & 0o777 == 0o600


@every_page
def test_addresses_are_those_of_our_parts_or_the_demo(page: Page) -> None:
    ours = {service.port for service in (*services.ALWAYS, *services.DEMO_ONLY, services.PHONE)}
    demo = {int(replica.url.rpartition(":")[2]) for replica in load(ROOT / "fleet.yml").replicas}
    grafana = {3000}
    for port in re.findall(r"127\.0\.0\.1:(\d+)", page.text):
        assert int(port) in ours | demo | grafana


@every_page
def test_make_targets_and_compose_services_exist(page: Page) -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    composed = set(yaml.safe_load((ROOT / "compose.yaml").read_text())["services"])
    for command in page.commands():
        if made := re.match(r"make (\w+)", command):
            assert made[1] in targets, command
        if inside := re.match(r"docker compose exec (\S+)", command):
            assert inside[1] in composed, command
