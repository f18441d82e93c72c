"""Which card serves which replica: what fleet.yml says holds, else what the processes show."""

import pytest

from exporter.fleet import Replica
from exporter.gpu.join import Claim, Stranger, claims, strangers
from exporter.gpu.reading import Card, Hold, Reading

A, B, PART = Card(gpu="GPU-a"), Card(gpu="GPU-b"), Card(gpu="GPU-b", partition="3")


def replica(name: str, port: int, *gpus: str, host: str = "127.0.0.1") -> Replica:
    return Replica(name=name, url=f"http://{host}:{port}", gpus=gpus)


def held(card: Card, *holds: tuple[int, float | None], alias: str = "") -> Reading:
    return Reading(card=card, alias=alias, holds=tuple(Hold(ports=(port,), memory=memory) for port, memory in holds))


def joined(replicas: list[Replica], readings: list[Reading]) -> list[tuple[str, Card, float | None]]:
    found = claims(replicas, readings, lambda name: f"model of {name}")
    assert all(claim.model == f"model of {claim.replica}" for claim in found)
    return [(claim.replica, claim.card, claim.memory) for claim in found]


def test_cards_of_fleet_yml_are_claimed_even_if_they_are_not_there() -> None:
    assert joined([replica("r", 8000, "GPU-a", "GPU-b")], []) == [("r", A, None), ("r", B, None)]


def test_an_instance_is_named_by_card_and_instance_or_by_its_own_uuid() -> None:
    there = [Reading(card=PART, alias="MIG-7")]
    assert joined([replica("r", 8000, "GPU-b/3"), replica("s", 8001, "MIG-7")], there) == [
        ("r", PART, None),
        ("s", PART, None),
    ]


ON_HOST, OF_HOST = Card(gpu="node-1/2"), Card(gpu="node-1/2", partition="3")


@pytest.mark.parametrize(
    ("name", "card"),
    [
        ("node-1/2", ON_HOST),
        ("node-1/2/3", OF_HOST),
        ("node-7/2", Card(gpu="node-7/2")),
        ("GPU-x/2", Card(gpu="GPU-x", partition="2")),
        ("692231000131/1", Card(gpu="692231000131", partition="1")),
        ("PCB052003-0073/1", Card(gpu="PCB052003-0073", partition="1")),
        ("MIG-GPU-b/3/0", PART),
    ],
)
def test_a_hosts_card_is_no_instance_of_one(name: str, card: Card) -> None:
    there = [
        *(Reading(card=each) for each in (ON_HOST, OF_HOST, Card(gpu="PCB052003-0073"))),
        Reading(card=PART, alias="MIG-GPU-b/3/0"),
    ]
    assert joined([replica("r", 8000, name)], there) == [("r", card, None)]


def test_names_that_stand_for_no_card_are_found() -> None:
    there = [Reading(card=A), Reading(card=B), Reading(card=PART, alias="MIG-7")]
    named = replica("r", 8000, "GPU-a", "GPU-b/3", "MIG-7", "GPU-c", "GPU-b/4", "GPU-c/1")
    assert list(strangers([named, replica("s", 8001)], there)) == [
        Stranger(replica="r", name="GPU-c", of_card=False),
        Stranger(replica="r", name="GPU-b/4", of_card=True),
        Stranger(replica="r", name="GPU-c/1", of_card=False),
    ]


def test_a_process_that_listens_on_the_replicas_port_tells_its_cards_and_memory() -> None:
    readings = [held(A, (8000, 11.0), (8000, 12.0), (9000, 5.0)), held(B, (8000, None))]
    assert joined([replica("r", 8000), replica("s", 9000), replica("t", 7000)], readings) == [
        ("r", A, 23.0),
        ("r", B, None),
        ("s", A, 5.0),
    ]


def test_ports_of_other_hosts_are_not_ours() -> None:
    assert joined([replica("r", 8000, host="10.0.0.11")], [held(A, (8000, 11.0))]) == []


def test_fleet_yml_overrules_what_processes_show_and_keeps_their_memory() -> None:
    readings = [held(A, (8000, 11.0)), held(B, (8000, 12.0))]
    assert joined([replica("r", 8000, "GPU-a")], readings) == [("r", A, 11.0)]


def test_a_card_that_two_replicas_share_is_claimed_by_both() -> None:
    found = claims([replica("r", 1, "GPU-a"), replica("s", 2, "GPU-a")], [], str.upper)
    assert found == (Claim(replica="r", model="R", card=A), Claim(replica="s", model="S", card=A))


def test_a_lost_card_is_still_claimed_and_holds_no_memory() -> None:
    lost = Reading(card=A, up=False, holds=(Hold(ports=(8000,), memory=11.0),))
    assert joined([replica("r", 8000)], [lost]) == [("r", A, None)]
