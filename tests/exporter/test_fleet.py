"""fleet.yml: what can be used is read into values, what cannot is refused with place, value and fix."""

import re
from dataclasses import fields, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from exporter.cards import CardPage, Gpus
from exporter.fleet import Fleet, FleetError, Links, ModelPolicy, Replica, load
from exporter.objectives import Objectives
from exporter.oncall import Oncall, PagerDuty, Slack, Webhook
from exporter.thresholds import Thresholds

FLEETS = Path(__file__).parent / "fixtures" / "fleets"

REFUSALS: dict[str, str] = yaml.safe_load((FLEETS / "refusals.yml").read_text())


@pytest.fixture(autouse=True)
def _among_the_fleets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FLEETS)


@pytest.mark.parametrize("name", REFUSALS)
def test_a_bad_fleet_is_refused_with_place_value_and_fix(name: str) -> None:
    with pytest.raises(FleetError) as refusal:
        load(Path(f"{name}.yml"))
    assert str(refusal.value) == REFUSALS[name]


def test_every_bad_fleet_has_its_sentence() -> None:
    assert {file.stem for file in Path().glob("bad-*.yml")} == set(REFUSALS)


@pytest.mark.parametrize("name", REFUSALS)
def test_no_refusal_repeats_a_secret(name: str) -> None:
    assert "hunter2" not in REFUSALS[name]
    assert "sk-123" not in REFUSALS[name]


def test_a_refusal_names_line_and_replica_where_the_value_was_written(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yml"
    file.write_text(
        "\n# ours\nreplicas:\n"
        "- &base {name: a, url: 'http://h:1', engine: vllm}\n"
        "- <<: *base\n  name: b\n  url: 'http://h:2'\n  labels:\n    rack: 7\n"
    )
    with pytest.raises(FleetError) as refusal:
        load(file)
    assert str(refusal.value).startswith("fleet.yml:9: replicas[1] (b).labels.rack: expected text")
    file.write_text(file.read_text().replace("engine: vllm", "engine: vlm"))
    with pytest.raises(FleetError, match=r"^fleet\.yml:4: replicas\[0\] \(a\)\.engine: "):
        load(file)


def test_a_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(FleetError, match=r"^no-such\.yml: cannot be read: No such file or directory"):
        load(Path("no-such.yml"))


@pytest.fixture
def fleet() -> Fleet:
    return load(Path("good.yml"))


def test_replicas_are_read_with_all_they_say(fleet: Fleet) -> None:
    assert fleet.replicas == (
        Replica(
            name="vllm-a",
            url="http://node-1:8000",
            model="qwen3-8b",
            engine="vllm",
            api_key_file=Path("key"),
            gpus=("GPU-5c7f0a12-0000-4000-8000-000000000001", "GPU-5c7f0a12-0000-4000-8000-000000000002/3"),
            labels={"zone": "eu-1"},
        ),
        Replica(name="llama-a", url="http://[::1]:8080"),
        Replica(name="batch", url="https://batch.example", model="batch-70b"),
    )
    assert fleet.replicas[0].address == "node-1:8000"


def test_what_is_not_said_of_objectives_stays_as_in_the_default(fleet: Fleet) -> None:
    assert fleet.slos.window == timedelta(days=28)
    assert fleet.slos.default.ttft == Objectives().ttft
    assert fleet.slos.default.itl.threshold == timedelta(milliseconds=80)
    assert fleet.slos.of("another").availability.objective == Decimal("0.9995")
    assert fleet.slos.of("qwen3-8b").ttft.threshold == timedelta(milliseconds=800)
    assert fleet.slos.of("qwen3-8b").itl == fleet.slos.default.itl


def test_shares_are_exact_decimals(fleet: Fleet) -> None:
    assert str(fleet.slos.of("qwen3-8b").ttft.objective) == "0.99"


@pytest.mark.parametrize("written", ["10%", "60%", "99.999%"])
def test_an_objective_may_be_modest(tmp_path: Path, written: str) -> None:
    (tmp_path / "fleet.yml").write_text(
        f'replicas: [{{name: a, url: "http://h:1"}}]\nslos: {{default: {{goodput: {{objective: {written}}}}}}}\n'
    )
    assert load(tmp_path / "fleet.yml").slos.default.goodput.objective == Decimal(written[:-1]) / 100


@pytest.mark.parametrize("written", [f"0.{'0' * 60}1%", f"{'0' * 60}1%"])
def test_an_objective_of_next_to_nothing_is_refused_in_a_sentence(tmp_path: Path, written: str) -> None:
    (tmp_path / "fleet.yml").write_text(
        f'replicas: [{{name: a, url: "http://h:1"}}]\nslos: {{default: {{goodput: {{objective: {written}}}}}}}\n'
    )
    with pytest.raises(FleetError, match=r"10% or more \(did you mean 99%\?\), got '0"):
        load(tmp_path / "fleet.yml")


def test_what_is_not_said_of_thresholds_stays_as_it_is(fleet: Fleet) -> None:
    table = fleet.thresholds
    assert table.default == replace(Thresholds(), cold_start=timedelta(minutes=20), kv_cache=Decimal("0.9"))
    assert table.models == {"qwen3-8b": replace(table.default, outages=5)}


def test_every_threshold_is_explained() -> None:
    for each in fields(Thresholds):
        assert re.search(rf"^ *{each.name} +\w.{{10}}", Thresholds.__doc__ or "", re.MULTILINE), each.name


def test_policies_and_spares_are_read(fleet: Fleet) -> None:
    assert fleet.spare_replicas == 2
    assert fleet.policy("batch-70b") == ModelPolicy(min_ready=0)
    assert fleet.policy("another") == ModelPolicy(min_ready=1)


def test_receivers_are_read(fleet: Fleet) -> None:
    assert fleet.oncall.page == (
        PagerDuty(routing_key_file=Path("key")),
        Slack(api_url_file=Path("key"), channel="#llm-ops"),
    )
    assert fleet.oncall.ticket == ()
    assert fleet.oncall.heartbeat == (Webhook(url="https://deadman.example/ping"),)


def test_who_hears_of_nothing_is_told_and_without_oncall_the_phone_hears_all(tmp_path: Path) -> None:
    webhook = Webhook(url="http://h/hook")
    everybody = Oncall(page=(webhook,), ticket=(webhook,), heartbeat=(webhook,))
    assert [key for key in ("ticket", "heartbeat") if replace(everybody, **{key: ()}).gaps()] == ["ticket", "heartbeat"]
    assert everybody.gaps() == ()
    (tmp_path / "fleet.yml").write_text('replicas: [{name: a, url: "http://h:1"}]\noncall:\n')
    assert load(tmp_path / "fleet.yml").oncall == Oncall()
    assert Oncall().gaps() == ()


def test_links_are_read_without_a_slash_at_the_end(fleet: Fleet) -> None:
    assert fleet.links == Links(runbooks="https://servewatch.example/runbooks")


def test_who_tells_about_the_cards_is_read(fleet: Fleet) -> None:
    guarded = CardPage(url="https://node-3:9400", api_key_file=Path("key"))
    assert fleet.gpus == Gpus(
        nvml=False, pages={"dcgm": (CardPage(url="http://node-1:9400"), guarded)}, exporters=("http://node-2:9801",)
    )


WHOLE = "GPU-5c7f0a12-0000-4000-8000-00000000000a"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (WHOLE, WHOLE),
        (f"gpu-{WHOLE[4:].upper()}/3", f"{WHOLE}/3"),
        (f"mig-{WHOLE[4:].upper()}", f"MIG-{WHOLE[4:]}"),
        (f"MIG-{WHOLE}/1/0", f"MIG-{WHOLE}/1/0"),
        ("'692231000131'", "692231000131"),
        ("PCB052003-0073/1", "PCB052003-0073/1"),
        ("node-1/2", "node-1/2"),
        ("gpu-box-7/3", "gpu-box-7/3"),
        ("node-1/2/3", "node-1/2/3"),
    ],
)
def test_a_name_that_can_mean_one_card_only_is_read_as_its_maker_writes_it(
    tmp_path: Path, written: str, read: str
) -> None:
    (tmp_path / "fleet.yml").write_text(f'replicas: [{{name: a, url: "http://h:1", gpus: [{written}]}}]\n')
    assert load(tmp_path / "fleet.yml").replicas[0].gpus == (read,)


@pytest.mark.parametrize("written", ["1", "'7'", "cuda:1", "CUDA0", "gpu1", "nvidia0", "index:0", "renderD128"])
def test_an_index_is_no_name(tmp_path: Path, written: str) -> None:
    (tmp_path / "fleet.yml").write_text(f'replicas: [{{name: a, url: "http://h:1", gpus: [{written}]}}]\n')
    with pytest.raises(FleetError, match="its index is another one for CUDA than for nvidia-smi"):
        load(tmp_path / "fleet.yml")


def test_the_committed_fleet_can_be_used() -> None:
    fleet = load(Path(__file__).parents[2] / "fleet.yml")
    assert len(fleet.replicas) == 5


def test_a_fleet_may_get_all_its_replicas_from_included_files(tmp_path: Path) -> None:
    (tmp_path / "fleet.yml").write_text("include: [targets/*.yml]\n")
    assert load(tmp_path / "fleet.yml").replicas == ()
    (tmp_path / "targets").mkdir()
    (tmp_path / "targets" / "a.yml").write_text('replicas: [{name: a, url: "http://h:1"}]\n')
    assert [replica.name for replica in load(tmp_path / "fleet.yml").replicas] == ["a"]


def test_replicas_may_share_what_they_have_in_common_by_yaml_merges(tmp_path: Path) -> None:
    (tmp_path / "fleet.yml").write_text(
        "replicas:\n"
        '  - &first {name: a, url: "http://h:1", model: m, labels: &zone {zone: eu}}\n'
        '  - &second {<<: *first, name: b, url: "http://h:2"}\n'
        '  - {<<: *second, name: c, url: "http://h:3", labels: {<<: *zone, rack: "7"}}\n'
    )
    read = [(one.name, one.model, one.labels) for one in load(tmp_path / "fleet.yml").replicas]
    assert read == [("a", "m", {"zone": "eu"}), ("b", "m", {"zone": "eu"}), ("c", "m", {"zone": "eu", "rack": "7"})]


@pytest.mark.parametrize("pattern", ["**x", "[", "a" * 5000 + "*", "*/x.yml", "~/*.yml"])
def test_a_pattern_that_matches_nothing_yet_is_no_mistake(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "fleet.yml").write_text(f'include: ["{pattern}"]\nreplicas: [{{name: a, url: "http://h:1"}}]\n')
    assert len(load(tmp_path / "fleet.yml").replicas) == 1


def test_a_mounted_volume_is_included_once_though_its_links_lead_to_a_hidden_folder(tmp_path: Path) -> None:
    volume = tmp_path / "targets"
    (volume / "..2026_11_29").mkdir(parents=True)
    (volume / "..2026_11_29" / "a.yml").write_text('replicas: [{name: a, url: "http://h:1"}]\n')
    (volume / "..data").symlink_to("..2026_11_29")
    (volume / "a.yml").symlink_to("..data/a.yml")
    (tmp_path / "fleet.yml").write_text("include: [targets/**/*.yml]\n")
    assert [one.name for one in load(tmp_path / "fleet.yml").replicas] == ["a"]
