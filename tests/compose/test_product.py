"""The product as `docker compose up -d` gives it, its clock twenty times as fast; the tests follow each other."""

import time
from typing import Any

import pytest

from exporter import catalogue
from tests.compose.product import CHECKED, Product
from tests.compose.test_compose_file import OURS

PORTS = {"exporter": 9801, "prometheus": 9090, "alertmanager": 9093, "phone": 9803}
REPLICAS = {"vllm-a", "vllm-b", "vllm-c", "llama-a", "llama-b"}
KILLED_MODEL, KILLED = "llama-3.2-3b", ("llama-a", "llama-b")
PAGED_WITHIN = 60  # seconds; of what it takes at full speed most is `for` and `group_wait`


def messages(product: Product, **filters: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = product.json("phone", PORTS["phone"], "/api/messages", **filters)
    return found


def ready(product: Product) -> set[str]:
    return {replica for replica, up in product.query(catalogue.REPLICA_UP.name).items() if up == 1}


def test_every_service_is_healthy(product: Product) -> None:
    assert product.healthy(*CHECKED)


def test_generate_has_rendered_and_ended(product: Product) -> None:
    state = product.inspect("generate")["State"]
    assert (state["Status"], state["ExitCode"]) == ("exited", 0)


@pytest.mark.parametrize("service", [*CHECKED, "load"])
def test_a_container_runs_without_root_and_cannot_change_its_image(product: Product, service: str) -> None:
    assert product.compose("exec", "-T", service, "id", "-u").strip() == ("10001" if service in OURS else "65534")
    refused = product.compose("exec", "-T", service, "sh", "-c", "touch /bin/x 2>&1 || true")
    assert "Read-only file system" in refused


@pytest.mark.parametrize("service", PORTS)
def test_a_port_is_open_on_the_loopback_address_alone(product: Product, service: str) -> None:
    published = product.inspect(service)["NetworkSettings"]["Ports"][f"{PORTS[service]}/tcp"]
    assert {binding["HostIp"] for binding in published} == {"127.0.0.1"}


def test_prometheus_has_every_replica_of_the_demo_and_its_tokens(product: Product) -> None:
    product.wait_until(lambda: ready(product) == REPLICAS, "every replica is up", seconds=30)
    tokens = f"increase({catalogue.GENERATION_TOKENS.name}[1m]) > 0"
    product.wait_until(lambda: set(product.query(tokens)) == REPLICAS, "every replica serves the load", seconds=60)


def test_prometheus_has_loaded_every_rule_and_reaches_every_target(product: Product) -> None:
    groups = product.json("prometheus", PORTS["prometheus"], "/api/v1/rules")["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert {rule["type"] for rule in rules} == {"recording", "alerting"}
    assert {rule["lastError"] for rule in rules if rule.get("lastError")} == set()
    jobs = ("exporter", "prometheus", "alertmanager", "replicas")
    for job in jobs:
        assert set(product.query(f'min(up{{job="{job}"}})').values()) == {1.0}, job


def test_the_watchdog_reaches_the_phone(product: Product) -> None:
    product.wait_until(lambda: bool(messages(product, receiver="heartbeat")), "the heartbeat arrives", seconds=60)


def test_a_replica_added_by_an_editor_that_renames_is_scraped_after_a_reload(product: Product) -> None:
    fleet = product.directory / "fleet.yml"
    edited = fleet.with_suffix(".new")
    line = '  - {name: vllm-d, url: "http://localhost:9813", model: qwen3-8b, engine: vllm}\n'
    edited.write_text(fleet.read_text().replace("\nreplicas:\n", f"\nreplicas:\n{line}"))
    edited.rename(fleet)
    product.reload("exporter", PORTS["exporter"])
    product.wait_until(lambda: "vllm-d" in ready(product), "the new replica is scraped", seconds=60)


def test_killed_replicas_page_the_phone_and_healed_ones_resolve_the_page(product: Product) -> None:
    for replica in KILLED:
        product.compose("exec", "-T", "simulator", "python", "-m", "simulator", "break", replica, "kill")
    down = {"receiver": "page", "alertname": "LLMModelDown"}
    product.wait_until(
        lambda: bool(messages(product, **down, status="firing")), "the phone is paged", seconds=PAGED_WITHIN
    )
    [page] = messages(product, **down, status="firing")
    assert page["labels"]["model"] == KILLED_MODEL
    assert not ready(product) & set(KILLED)
    for replica in KILLED:
        product.compose("exec", "-T", "simulator", "python", "-m", "simulator", "heal", replica)
    product.wait_until(
        lambda: bool(messages(product, **down, status="resolved")), "the page is resolved", seconds=PAGED_WITHIN
    )


def test_what_was_measured_survives_a_new_container(product: Product) -> None:
    before = f"count_over_time({catalogue.REPLICA_UP.name}{{replica='vllm-a'}}[1h] @ {time.time():.3f})"
    measured = product.query(before)
    started = product.inspect("prometheus")["Created"]
    product.compose("up", "--detach", "--force-recreate", "--no-deps", "prometheus")
    assert product.inspect("prometheus")["Created"] != started
    product.wait_until(lambda: answers(product, before), "the past is there again", seconds=30)
    assert product.query(before) == measured


def answers(product: Product, expression: str) -> bool:
    try:
        return bool(product.query(expression))
    except OSError:  # it is starting
        return False
