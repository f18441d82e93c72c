"""OpenSLO: what goes out comes back, exactly; what Servewatch cannot promise is refused where it stands."""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alerts.exchange import documents, imported, openslo
from exporter.catalogue import SLO
from exporter.document import FleetError, Node
from exporter.fleet import Fleet, Replica
from exporter.objectives import LatencyObjective, Objectives, Slos, slos
from prometheus.lint.reading import read
from tests.alerts.exchange.fleets import fleets, models

DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
FLEET = Fleet(replicas=(Replica(name="a", url="http://10.0.0.1:8000", model="qwen3-8b"),))


def exported(fleet: Fleet) -> str:
    return documents.write(openslo.export(fleet))


@settings(deadline=None, max_examples=50)
@given(fleets)
def test_an_export_comes_back_exactly(fleet: Fleet) -> None:
    section = imported.section(exported(fleet), "openslo.yml")
    assert slos(Node(value=section, file="fleet.yml", path="slos")) == fleet.slos


@settings(deadline=None, max_examples=50)
@given(fleets)
def test_the_printed_section_says_the_same(fleet: Fleet) -> None:
    text = documents.write([{"slos": imported.section(exported(fleet), "openslo.yml")}])
    [document] = documents.read(text, "fleet.yml")
    assert slos(document.child("slos")) == fleet.slos


@settings(deadline=None, max_examples=50)
@given(fleets)
def test_every_document_has_what_openslo_asks_for(fleet: Fleet) -> None:
    found = openslo.export(fleet)
    names = [(each["kind"], each["metadata"]["name"]) for each in found]
    assert len(set(names)) == len(names)
    for each in found:
        assert each["apiVersion"] == "openslo/v1"
        assert DNS_LABEL.fullmatch(each["metadata"]["name"])
        assert 0 < len(each["metadata"]["displayName"]) <= 63
    services = {each["metadata"]["name"] for each in found if each["kind"] == "Service"}
    specs = [each["spec"] for each in found if each["kind"] == "SLO"]
    assert len(specs) == len(services) * len(SLO.values)
    for spec in specs:
        assert spec["service"] in services
        for side in ("good", "total"):
            read(spec["indicator"]["spec"]["ratioMetric"][side]["metricSource"]["spec"]["query"])


@settings(deadline=None, max_examples=50)
@given(st.lists(models, min_size=2, max_size=6, unique=True))
def test_no_two_models_share_a_name(names: list[str]) -> None:
    fleet = Fleet(replicas=(), slos=Slos(models={name: Objectives() for name in names}))
    services = [each["metadata"]["name"] for each in openslo.export(fleet) if each["kind"] == "Service"]
    assert len(set(services)) == len(names) + 1


def test_a_share_is_written_as_a_decimal() -> None:
    objectives = Objectives(ttft=LatencyObjective(threshold=timedelta(seconds=1), objective=1 - Decimal("0.001")))
    text = exported(Fleet(replicas=(), slos=Slos(default=objectives)))
    assert "target: 0.999\n" in text
    assert "99.9% of requests good within 1s" in text


def test_a_model_without_objectives_of_its_own_follows_the_default() -> None:
    text = exported(FLEET)
    assert "name: qwen3-8b-ttft" in text
    assert 'query: model:llm_ttft_good:rate5m{model="qwen3-8b"}' in text
    assert "models" not in imported.section(text, "openslo.yml")


def test_an_edited_objective_of_such_a_model_becomes_its_own() -> None:
    edited = exported(FLEET).replace("target: 0.95", "target: 0.99").replace("target: 0.99", "target: 0.95", 2)
    section = imported.section(edited, "openslo.yml")
    assert section["models"] == {
        "qwen3-8b": {
            "ttft": {"threshold": "2s", "objective": "99%"},
            "itl": {"threshold": "100ms", "objective": "99%"},
        }
    }


def test_a_window_that_openslo_has_no_word_for_is_refused() -> None:
    with pytest.raises(FleetError, match=r"slos\.window: OpenSLO tells windows in whole minutes, got 86401s"):
        openslo.export(Fleet(replicas=(), slos=Slos(window=timedelta(days=1, seconds=1))))


def foreign(**changes: object) -> dict[str, Any]:
    """Write an SLO as another tool would, with changes to its spec."""
    query = 'sum(rate(llm_time_to_first_token_seconds_bucket{le="2.5",model="m"}[5m]))'
    ratio = {
        "counter": False,
        "good": {"metricSource": {"type": "Prometheus", "spec": {"query": query}}},
        "total": {"metricSource": {"type": "Prometheus", "spec": {"query": "up"}}},
    }
    spec = {
        "service": "chat",
        "indicator": {"metadata": {"name": "fast"}, "spec": {"ratioMetric": ratio}},
        "timeWindow": [{"duration": "4w", "isRolling": True}],
        "budgetingMethod": "Occurrences",
        "objectives": [{"targetPercent": Decimal("99.5")}],
        **changes,
    }
    return {"apiVersion": "openslo/v1", "kind": "SLO", "metadata": {"name": "fast"}, "spec": spec}


def asking(query: str) -> dict[str, Any]:
    document = foreign()
    document["spec"]["indicator"]["spec"]["ratioMetric"]["good"]["metricSource"]["spec"]["query"] = query
    return document


def noted(**notes: str) -> dict[str, Any]:
    document = asking("http_requests")
    document["metadata"]["annotations"] = {f"servewatch/{key}": value for key, value in notes.items()}
    return document


def test_a_foreign_document_is_understood_by_its_query() -> None:
    assert imported.section(documents.write([foreign()]), "o.yml") == {
        "window": "28d",
        "models": {"m": {"ttft": {"threshold": "2500ms", "objective": "99.5%"}}},
    }


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (asking('model:llm_availability_good:rate5m{model="m"}'), {"m": {"availability": {"objective": "99.5%"}}}),
        (
            asking('sum(rate(llm_requests_finished_total{outcome="stop",model="m"}[1h]))'),
            {"m": {"availability": {"objective": "99.5%"}}},
        ),
        (noted(slo="goodput", model="m"), {"m": {"goodput": {"objective": "99.5%"}}}),
        (noted(slo="itl", model="m", threshold="50ms"), {"m": {"itl": {"threshold": "50ms", "objective": "99.5%"}}}),
    ],
    ids=["recorded", "scraped", "annotated", "annotated latency"],
)
def test_query_or_annotations_say_what_is_meant(document: dict[str, Any], expected: dict[str, Any]) -> None:
    assert imported.section(documents.write([document]), "o.yml")["models"] == expected


def test_an_indicator_may_stand_in_a_document_of_its_own() -> None:
    document = foreign(indicatorRef="fast")
    sli = {**foreign(), "kind": "SLI", "spec": document["spec"].pop("indicator")["spec"]}
    assert imported.section(documents.write([document, sli]), "o.yml")["models"]["m"]["ttft"]["objective"] == "99.5%"


def _without(key: str) -> dict[str, Any]:
    document = foreign()
    del document["spec"][key]
    return document


REFUSED = {
    "another version": (
        {**foreign(), "apiVersion": "openslo/v1alpha"},
        "apiVersion: expected openslo/v1, got 'openslo/v1alpha'",
    ),
    "an alert policy": ({**foreign(), "kind": "AlertPolicy"}, "kind: expected SLO, Service"),
    "slices of time": (foreign(budgetingMethod="Timeslices"), "spec.budgetingMethod: expected Occurrences"),
    "a calendar": (
        foreign(timeWindow=[{"duration": "1M", "calendar": {"timeZone": "UTC"}}]),
        "spec.timeWindow[0]: expected a rolling window",
    ),
    "a month": (
        foreign(timeWindow=[{"duration": "1M", "isRolling": True}]),
        "spec.timeWindow[0].duration: expected a number of minutes, hours, days or weeks",
    ),
    "an hour": (
        foreign(timeWindow=[{"duration": "1h", "isRolling": True}]),
        "spec.timeWindow[0].duration: expected a window of at least 1d, got '1h'",
    ),
    "two windows": (foreign(timeWindow=[{}, {}]), "spec.timeWindow: expected exactly one window"),
    "two objectives": (
        foreign(objectives=[{"target": Decimal("0.9")}] * 2),
        "spec.objectives: expected exactly one objective",
    ),
    "a target of everything": (foreign(objectives=[{"target": 1}]), "spec.objectives[0].target: expected a share"),
    "a target above everything": (
        foreign(objectives=[{"target": Decimal("1.2")}]),
        "expected a share of good requests, 0.1 or more and below 1, got 1.2",
    ),
    "a percentage as target": (
        foreign(objectives=[{"target": 95}]),
        "target: expected a share of good requests, 0.1 or more and below 1, or targetPercent: 95, got 95",
    ),
    "a share as percentage": (
        foreign(objectives=[{"targetPercent": Decimal("0.99")}]),
        "expected a percentage of good requests, 10 or more and below 100, or target: 0.99, got 0.99",
    ),
    "a target that fleet.yml refuses": (
        foreign(objectives=[{"target": Decimal("0.05")}]),
        "expected a share of good requests, 0.1 or more and below 1, got 0.05",
    ),
    "a target in words": (foreign(objectives=[{"target": "high"}]), "spec.objectives[0].target: expected a number"),
    "no target": (foreign(objectives=[{"displayName": "x"}]), "spec.objectives[0]: expected either target or"),
    "a threshold on a value": (
        foreign(objectives=[{"target": Decimal("0.9"), "op": "lte", "value": 2}]),
        "spec.objectives[0].op: unknown key 'op'",
    ),
    "a threshold metric": (
        foreign(indicator={"spec": {"thresholdMetric": {"metricSource": {}}}}),
        "spec.indicator.spec.thresholdMetric: expected a ratioMetric",
    ),
    "bad events": (
        foreign(indicator={"spec": {"ratioMetric": {"bad": {}, "total": {}}}}),
        "spec.indicator.spec.ratioMetric: expected the keys good and total",
    ),
    "a reference to nothing": (
        {**foreign(), "spec": {**_without("indicator")["spec"], "indicatorRef": "slow"}},
        "spec.indicatorRef: expected the name of an SLI in the same file, got 'slow'",
    ),
    "no indicator": (_without("indicator"), "spec: expected indicator or indicatorRef, got neither"),
    "alert policies": (foreign(alertPolicies=["p"]), "spec.alertPolicies: unknown key 'alertPolicies'"),
    "series of somebody else": (
        asking("sum(rate(http_requests_total[5m]))"),
        "spec.indicator.spec.ratioMetric.good.metricSource.spec.query: expected a query of Servewatch's own series",
    ),
    "no PromQL": (asking("SELECT 1"), "query: expected a query of Servewatch's own series"),
    "two thresholds": (
        asking('llm_time_to_first_token_seconds_bucket{le="1.0"} or llm_time_to_first_token_seconds_bucket{le="2.5"}'),
        "query: expected a query of Servewatch's own series",
    ),
    "requests that failed": (
        asking('sum(rate(llm_requests_finished_total{outcome="error",model="m"}[5m]))'),
        "query: expected a query of Servewatch's own series",
    ),
    "requests that failed, among others": (
        asking('sum(rate(llm_requests_finished_total{outcome=~".+",model="m"}[5m]))'),
        "query: expected a query of Servewatch's own series",
    ),
    "outcomes by a pattern that Go alone reads": (
        asking(r'sum(rate(llm_requests_finished_total{outcome=~"\\pL+",model="m"}[5m]))'),
        "query: expected a query of Servewatch's own series",
    ),
    "every request but the good ones": (
        asking('1 - llm_time_to_first_token_seconds_bucket{le="1.0",model="m"}'),
        "query: expected a query of Servewatch's own series",
    ),
    "two of the models": (
        asking('llm_time_to_first_token_seconds_bucket{le="1.0",model=~"m|n"}'),
        "query: expected a query of Servewatch's own series",
    ),
    "no model": (
        asking('llm_time_to_first_token_seconds_bucket{le="1.0",model=""}'),
        "query: expected a query of Servewatch's own series",
    ),
    "one replica": (
        asking('llm_time_to_first_token_seconds_bucket{le="1.0",replica="a"}'),
        "query: expected a query of Servewatch's own series",
    ),
    "a list of kinds": ({**foreign(), "kind": ["SLO"]}, "kind: expected SLO, Service"),
    "a latency without a threshold": (
        asking('model:llm_ttft_good:rate5m{model="m"}'),
        "metadata: expected an annotation servewatch/threshold such as 2s",
    ),
    "an unknown objective": (noted(slo="speed"), "metadata.annotations.servewatch/slo: expected one of: ttft, itl"),
    "an annotated latency without a threshold": (
        noted(slo="ttft"),
        "metadata.annotations.servewatch/threshold: expected an annotation servewatch/threshold such as 2s",
    ),
    "a threshold that is no duration": (
        noted(slo="ttft", threshold="soon"),
        "metadata.annotations.servewatch/threshold: expected a positive duration such as 800ms",
    ),
}


@pytest.mark.parametrize(("document", "sentence"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_promised_is_refused_where_it_stands(document: dict[str, Any], sentence: str) -> None:
    service = {"apiVersion": "openslo/v1", "kind": "Service", "metadata": {"name": "chat"}, "spec": {}}
    with pytest.raises(FleetError, match=re.escape(sentence)) as refusal:
        imported.section(documents.write([service, document]), "o.yml")
    assert str(refusal.value).startswith(f"o.yml: document 2 ({document['kind']} fast): ")


@pytest.mark.parametrize("condition", ['model!="n"', 'model!~"n|o"', 'model!=""', ""])
def test_a_query_about_all_models_but_some_tells_the_default(condition: str) -> None:
    document = asking(f'llm_time_to_first_token_seconds_bucket{{le="1.0",{condition}}}')
    assert imported.section(documents.write([document]), "o.yml")["default"].keys() == {"ttft"}


def test_one_objective_is_told_once() -> None:
    with pytest.raises(FleetError, match=r"document 2 \(SLO fast\): the objective ttft of m is already told by o\.yml"):
        imported.section(documents.write([foreign(), foreign()]), "o.yml")


def test_there_is_one_window_for_all() -> None:
    other = {**asking('model:llm_availability_good:rate5m{model="m"}')}
    other["spec"]["timeWindow"][0]["duration"] = "30d"
    sentence = "o.yml: document 2 (SLO fast): spec.timeWindow[0].duration: expected 28d as in o.yml: document 1"
    with pytest.raises(FleetError, match=re.escape(sentence)):
        imported.section(documents.write([foreign(), other]), "o.yml")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: [", "o.yml: not YAML"),
        ("a: 1\na: 2", "key 'a' is given twice"),
        ("", "o.yml: expected at least one document of kind SLO, got none"),
        ("just text", "o.yml: document 1: expected a mapping"),
        ("a: 2026-13-99", "no number and no date"),
        ("a: !!bool maybe", "no number and no date"),
        ("a: !!timestamp soon", "no number and no date"),
        ("apiVersion: openslo/v1\nkind: SLO\nmetadata: x\nspec: {}", "metadata: expected a mapping, got 'x'"),
        ("apiVersion: openslo/v1\nkind: SLI\nmetadata: {name: [x]}\nspec: {}", "metadata.name: expected the name"),
        (
            "kind: SLO",
            "(apiVersion: openslo/v1, kind: SLO, Service, DataSource, SLI), got one without apiVersion",
        ),
        ("apiVersion: openslo/v1\nkind: SLO", "o.yml: document 1: key 'metadata' is missing"),
    ],
)
def test_a_file_that_holds_no_documents_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(FleetError, match=re.escape(sentence)):
        imported.section(text, "o.yml")
