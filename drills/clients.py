"""The running parts as a drill sees them: questions over HTTP. In, a base address; out, plain values."""

from dataclasses import dataclass
from typing import Any

import requests

from drills.model import CardFault, Fault
from simulator.fake_nvml import HEALTHY, FakeNvml

__all__ = ["Cards", "Message", "Phone", "Prometheus", "Simulator"]

_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What the phone got: one alert of one notification."""

    status: str
    alertname: str
    model: str
    summary: str


class Prometheus:
    """The query side of a Prometheus."""

    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, expression: str) -> list[Any]:
        """Answer the instant vector of an expression as Prometheus' JSON; raises requests.HTTPError with its reason."""
        answer = requests.get(f"{self.url}/api/v1/query", params={"query": expression}, timeout=_TIMEOUT)
        answer.raise_for_status()
        result: list[Any] = answer.json()["data"]["result"]
        return result

    def alert_state(self, alertname: str, model: str) -> str:
        """Answer inactive, pending or firing for an alert of a model, or of none."""
        answer = requests.get(f"{self.url}/api/v1/alerts", timeout=_TIMEOUT)
        answer.raise_for_status()
        states = {
            alert["state"]
            for alert in answer.json()["data"]["alerts"]
            if alert["labels"]["alertname"] == alertname and alert["labels"].get("model", "") == model
        }
        return next((state for state in ("firing", "pending") if state in states), "inactive")


class Simulator:
    """The control side of the simulator."""

    def __init__(self, url: str) -> None:
        self.url = url

    def break_(self, fault: Fault) -> None:
        """Inject a fault; raises requests.HTTPError if the simulator does not know it."""
        address = f"{self.url}/replicas/{fault.replica}/faults/{fault.name}"
        requests.put(address, json=dict(fault.parameters), timeout=_TIMEOUT).raise_for_status()

    def heal(self, fault: Fault) -> None:
        """Take a fault back."""
        address = f"{self.url}/replicas/{fault.replica}/faults/{fault.name}"
        requests.delete(address, timeout=_TIMEOUT).raise_for_status()


class Cards:
    """The cards of the fake driver."""

    def __init__(self, driver: FakeNvml) -> None:
        self._driver = driver

    def break_(self, fault: CardFault) -> None:
        """Let a card say what is wrong."""
        self._driver.card(fault.card, **fault.says)

    def heal(self, fault: CardFault) -> None:
        """Let the card say again what a healthy one says."""
        self._driver.card(fault.card, **{key: HEALTHY.get(key) for key in fault.says})


class Phone:
    """The phone of the person on call."""

    def __init__(self, url: str) -> None:
        self.url = url

    def messages(self, receiver: str) -> list[Message]:
        """Answer what came for a receiver (page, ticket) so far, oldest first."""
        answer = requests.get(f"{self.url}/api/messages", params={"receiver": receiver}, timeout=_TIMEOUT)
        answer.raise_for_status()
        return [
            Message(
                status=message["status"],
                alertname=message["alertname"],
                model=message["labels"].get("model", ""),
                summary=message["annotations"].get("summary", ""),
            )
            for message in reversed(answer.json())
        ]
