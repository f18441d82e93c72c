import re
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from running.paths import ROOT
from tests.compose import command
from tests.compose.command import Compose

Service = Mapping[str, Any]
SERVICES: Mapping[str, Service] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
OURS = {"generate", "exporter", "simulator", "load", "phone"}
DEMO = {"simulator", "load", "phone"}
WRITES = {  # each service and the only paths that it can write, apart from /tmp
    "generate": ["/generated"],
    "exporter": ["/var/lib/servewatch"],
    "prometheus": ["/prometheus"],
    "alertmanager": ["/alertmanager"],
    "grafana": ["/var/lib/grafana"],
    "simulator": [],
    "load": [],
    "phone": ["/var/lib/phone"],
}

every_service = pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES.keys())


@pytest.fixture(scope="module", params=command.all_versions() or (None,), ids=str)
def compose(request: pytest.FixtureRequest) -> Compose:
    found: Compose | None = request.param
    if found is None:
        pytest.fail(command.MISSING)
    return found


def test_every_compose_accepts_the_file(compose: Compose) -> None:
    asked = [*compose.command, "config", "--services"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == set(SERVICES)


def test_the_demo_is_a_profile_that_is_on_by_default() -> None:
    assert "COMPOSE_PROFILES=demo" in (ROOT / ".env").read_text().splitlines()
    assert {name for name, service in SERVICES.items() if service.get("profiles") == ["demo"]} == DEMO


@every_service
def test_a_service_has_no_privilege_to_lose(service: Service) -> None:
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "user" not in service, "the image's own user is not root"
    assert not {"privileged", "cap_add", "pid", "devices"} & set(service)


@every_service
def test_a_service_cannot_fill_the_memory_or_the_disk_with_logs(service: Service) -> None:
    assert service["mem_limit"]
    assert service["pids_limit"]
    assert set(service["logging"]["options"]) == {"max-size", "max-file"}


@every_service
def test_ports_are_published_on_the_loopback_address_only(service: Service) -> None:
    for port in service.get("ports", []):
        assert re.fullmatch(r"127\.0\.0\.1:\$\{[A-Z]+_PORT:-\d+\}:\d+", port)


@every_service
def test_an_image_is_pinned_to_a_full_version(service: Service) -> None:
    assert re.search(r":v?\d+\.\d+\.\d+$", service["image"])


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_writes_to_its_own_volume_and_nowhere_else(name: str) -> None:
    written = [target for target, writable in mounts(SERVICES[name]) if writable]
    assert written == WRITES[name]


@pytest.mark.parametrize("name", sorted(set(SERVICES) - {"generate", "load"}))
def test_a_service_that_answers_has_a_health_check(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"


@pytest.mark.parametrize("name", sorted(set(SERVICES) - DEMO - {"generate"}))
def test_a_service_waits_for_what_generate_renders(name: str) -> None:
    assert SERVICES[name]["depends_on"]["generate"] == {"condition": "service_completed_successfully"}


def test_one_image_serves_everything_that_is_ours() -> None:
    assert {name for name, service in SERVICES.items() if "build" in service} == OURS
    assert len({SERVICES[name]["image"] for name in OURS}) == 1


def test_the_demo_fleet_is_reached_as_without_docker() -> None:
    for name in ("simulator", "load"):
        assert SERVICES[name]["network_mode"] == "service:exporter"


def test_the_image_carries_no_secret_and_no_data() -> None:
    ignored, *named = [
        line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")
    ]
    assert ignored == "*"
    assert not {"!secrets", "!.env", "!.git", "!fleet.yml", "!."} & set(named)


def mounts(service: Service) -> list[tuple[str, bool]]:
    found = []
    for volume in service.get("volumes", []):
        if isinstance(volume, dict):
            found.append((volume["target"], not volume.get("read_only", False)))
        else:
            _, target, *mode = volume.split(":")
            found.append((target, mode != ["ro"]))
    return found


def test_the_version_of_the_image_is_that_of_the_project() -> None:
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version
    assert SERVICES["exporter"]["image"] == f"servewatch:{version[1]}"
