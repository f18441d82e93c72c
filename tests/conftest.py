"""Fixtures of the whole suite: a free port, and every version of the tools that judge what we generate.

A test that takes `promtools`, `amtools`, `prometheus_binaries` or `alertmanager_binaries` runs once per version.
A tool that is not there is a failure that says what to install, never a skip.
"""

import pytest
from hypothesis import settings

from running import ports, tools
from running.errors import ToolMissingError
from running.tools import Tool

settings.register_profile("servewatch", deadline=None)  # a machine under load is no finding
settings.load_profile("servewatch")


def _every(name: str) -> tuple[Tool | ToolMissingError, ...]:
    return tools.all_versions(name) or (ToolMissingError(tools.missing(name)),)


def _present(request: pytest.FixtureRequest) -> Tool:
    tool: Tool | ToolMissingError = request.param
    if isinstance(tool, ToolMissingError):
        pytest.fail(str(tool))
    return tool


@pytest.fixture
def free_port() -> int:
    """Answer a loopback port on which nothing listens; `running.ports.free_port()` gives more of them."""
    return ports.free_port()


@pytest.fixture(scope="session", params=_every("promtool"), ids=str)
def promtools(request: pytest.FixtureRequest) -> Tool:
    """Answer each promtool on this machine, one test run per version."""
    return _present(request)


@pytest.fixture(scope="session", params=_every("amtool"), ids=str)
def amtools(request: pytest.FixtureRequest) -> Tool:
    """Answer each amtool on this machine, one test run per version."""
    return _present(request)


@pytest.fixture(scope="session", params=_every("prometheus"), ids=str)
def prometheus_binaries(request: pytest.FixtureRequest) -> Tool:
    """Answer each Prometheus on this machine, one test run per version."""
    return _present(request)


@pytest.fixture(scope="session", params=_every("alertmanager"), ids=str)
def alertmanager_binaries(request: pytest.FixtureRequest) -> Tool:
    """Answer each Alertmanager on this machine, one test run per version."""
    return _present(request)
