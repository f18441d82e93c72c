"""A taken port is named with who holds it."""

import os
import socket
from collections.abc import Iterator

import pytest

from running import ports, up
from running.errors import PortTakenError


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_the_holder_of_a_port_is_found(listener: socket.socket) -> None:
    holder = ports.holder(listener.getsockname()[1])
    assert holder is not None
    assert holder.pid == os.getpid()
    assert "pytest" in holder.command


def test_a_listener_on_all_addresses_holds_the_loopback_port() -> None:
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
        assert not ports.is_free(port)
        assert ports.holder(port) is not None


def test_a_listener_on_ipv6_is_found() -> None:
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        port = server.getsockname()[1]
        assert not ports.is_free(port)
        assert ports.holder(port) is not None


def test_nobody_holds_a_free_port(free_port: int) -> None:
    assert ports.is_free(free_port)
    assert ports.holder(free_port) is None


def test_a_connection_that_is_closing_does_not_hold_the_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            accepted, _ = server.accept()
            accepted.close()  # closed first on our side: the port stays in TIME_WAIT
    assert ports.is_free(port)


def test_every_taken_port_is_named_with_its_use_its_holder_and_a_way_out(
    listener: socket.socket, free_port: int
) -> None:
    port = listener.getsockname()[1]
    with socket.create_server(("127.0.0.1", 0)) as other:
        second = other.getsockname()[1]
        with pytest.raises(PortTakenError) as error:
            up.require_free({port: "Prometheus", free_port: "Exporter", second: "Alertmanager"})
    assert f"port {port} (Prometheus) is taken by pid {os.getpid()}: " in str(error.value)
    assert f"port {second} (Alertmanager) is taken by pid" in str(error.value)
    assert f"kill {os.getpid()}" in str(error.value)
    assert "Exporter" not in str(error.value)
