"""Fixtures: the product, brought up once from a copy of the checkout, on stand-ins where images cannot be pulled."""

from collections.abc import Iterator

import pytest

from running.errors import RunningError
from tests.compose import command, daemon, stand_ins
from tests.compose.daemon import NoDockerError
from tests.compose.product import CHECKED, Product

TIME_SCALE = "20"
NOT_STARTED = "grafana"  # it cannot be built here, and no stand-in of it would prove anything


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """Give the running product; skipped, with the daemon's own words, where no Docker can run."""
    try:
        with daemon.environment() as variables:
            stand_ins.make(variables)
            daemon.prove(variables, image=stand_ins.pinned("prom/prometheus"))
            brought_up = Product(
                command.newest(), tmp_path_factory.mktemp("compose"), {**variables, "TIME_SCALE": TIME_SCALE}
            )
            try:
                services = set(brought_up.compose("config", "--services").split()) - {NOT_STARTED}
                brought_up.compose("up", "--detach", *sorted(services))
                brought_up.wait_until(
                    lambda: brought_up.healthy(*CHECKED), f"healthy: {', '.join(CHECKED)}", seconds=90
                )
                yield brought_up
            except RunningError as error:
                pytest.fail(f"{error}\n{brought_up.logs()}")
            finally:
                brought_up.compose("down", "--volumes", "--timeout=2")
    except NoDockerError as error:
        pytest.skip(str(error))
