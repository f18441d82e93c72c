"""Several exporters on one fleet file: each replica has one, and it stays there when the fleet or the number grows."""

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from exporter.__main__ import main
from exporter.shard import Shard, jump, shard_of
from running.ports import free_port
from tests.exporter.serving import exporter, write_fleet

NAMES = [f"{model}-{number}" for model in ("vllm", "llama", "batch-70b") for number in range(1000)]
TOKEN = "a-token"  # noqa: S105 - a test's own


def test_a_name_is_on_the_same_shard_for_ever() -> None:
    assert [shard_of(name, 7) for name in ("vllm-a", "vllm-b", "vllm-c", "llama-a", "llama-b")] == [6, 5, 2, 5, 4]


@pytest.mark.parametrize(
    ("key", "count", "bucket"), [(1, 1, 0), (42, 57, 43), (0xDEAD10CC, 1, 0), (0xDEAD10CC, 666, 361), (256, 1024, 520)]
)
def test_keys_fall_where_other_implementations_put_them(key: int, count: int, bucket: int) -> None:
    assert jump(key, count) == bucket


@given(st.text(min_size=1, max_size=63), st.integers(1, 200))
def test_with_one_shard_more_a_name_stays_or_moves_to_the_new_one(name: str, count: int) -> None:
    before, after = shard_of(name, count), shard_of(name, count + 1)
    assert 1 <= before <= count
    assert after in {before, count + 1}


@pytest.mark.parametrize("count", [1, 2, 3, 7, 20])
def test_with_one_shard_more_only_its_part_of_the_replicas_moves(count: int) -> None:
    moved = sum(shard_of(name, count) != shard_of(name, count + 1) for name in NAMES)
    assert moved == pytest.approx(len(NAMES) / (count + 1), rel=0.2)


@pytest.mark.parametrize("count", [2, 3, 10])
def test_every_shard_has_about_as_many_replicas(count: int) -> None:
    sizes = Counter(shard_of(name, count) for name in NAMES)
    assert set(sizes) == set(range(1, count + 1))
    assert max(sizes.values()) < 1.25 * len(NAMES) / count


def test_the_only_shard_watches_everything() -> None:
    assert all(Shard().has(name) for name in NAMES)


@pytest.mark.parametrize("text", ["0/3", "4/3", "1/0", "1", "a/b", "-1/3", "1/3/5", ""])
def test_a_shard_that_cannot_be_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", f"--shard={text}"])
    assert f"expected i/n with i from 1 to n, such as 1/3, got '{text}'" in capsys.readouterr().err


def test_shards_share_a_fleet_and_know_whose_a_replica_is(tmp_path: Path) -> None:
    urls = {name: f"http://127.0.0.1:{free_port()}" for name in ("a", "b", "c", "d", "e", "f")}
    fleet = write_fleet(tmp_path / "fleet.yml", **urls)
    fleet.write_text(f"{fleet.read_text()}spare_replicas: 1\n")
    (tmp_path / "token").write_text(TOKEN)
    watched: dict[int, set[str]] = {}
    with ExitStack() as stack:
        addresses = {
            number: stack.enter_context(
                exporter(
                    fleet,
                    tmp_path / f"log-{number}",
                    *("--shard", f"{number}/2", "--admin-token-file", str(tmp_path / "token")),
                )
            )[0]
            for number in (1, 2)
        }
        for number, address in addresses.items():
            targets = requests.get(f"{address}/targets", timeout=30).json()
            watched[number] = {target["labels"]["replica"] for target in targets}
            assert f"shard {number}/2" in requests.get(address, timeout=30).text
            own = requests.get(f"{address}/metrics", timeout=30).text.splitlines()
            assert f"llm_fleet_replicas {len(watched[number])}.0" in own
            assert "llm_spare_replicas 1.0" in own
        assert all(watched.values()), "both have some"
        assert watched[1] | watched[2] == set(urls)
        assert not watched[1] & watched[2]

        foreign = min(watched[2])
        sentence = f"Replica {foreign} is watched by the exporter of shard 2/2; this one is shard 1/2.\n"
        answer = requests.get(f"{addresses[1]}/probe?target={foreign}", timeout=30)
        assert (answer.status_code, answer.text) == (404, sentence)
        answer = requests.put(
            f"{addresses[1]}/drain/{foreign}?ttl=1h", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30
        )
        assert (answer.status_code, answer.text) == (404, sentence)
