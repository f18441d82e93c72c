"""fleet.yml -> frozen dataclasses, or FleetError with a sentence that names file, path, value and fix.

The one file an operator edits. In: the path of a fleet file and those it includes. Out: a `Fleet`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import reduce
from pathlib import Path
from urllib.parse import urlsplit

from exporter import catalogue, includes
from exporter.access import Access, access
from exporter.address import guarded, server
from exporter.cards import Gpus, card_names, gpus
from exporter.document import FleetError, Node, read
from exporter.engines import ENGINES
from exporter.objectives import Slos, slos
from exporter.oncall import Oncall, oncall
from exporter.thresholds import ThresholdTable, thresholds

__all__ = ["Fleet", "FleetError", "Gpus", "Links", "ModelPolicy", "Replica", "load"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_ROUTERS = tuple(engine.name for engine in ENGINES.values() if engine.router is not None)
_OWN_URL = "give each replica its own url"
_OWN_MODEL = (
    f"{_OWN_URL}, or, where it is a router of several models, engine: {' or '.join(_ROUTERS)} and its own model"
)
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_SECTIONS = (
    *("replicas", "include", "slos", "thresholds"),
    *("spare_replicas", "models", "oncall", "links", "gpu", "exporter"),
)
_RESERVED_LABELS = frozenset(
    {"alertname", "exported_instance", "exported_job", "instance", "job", "le", "quantile", "severity"}
    | {value.name for value in vars(catalogue).values() if isinstance(value, catalogue.Label)}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One model server. `name` is its identity everywhere; `url` is http(s)://host[:port], no slash at the end."""

    name: str
    url: str
    model: str | None = None
    engine: str | None = None
    api_key_file: Path | None = None
    ca_file: Path | None = None
    gpus: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """host[:port] of the replica, for the `instance` label."""
        return urlsplit(self.url).netloc


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPolicy:
    """What is expected of one model; `min_ready` 0 means it may scale to zero and nobody is paged."""

    min_ready: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Base addresses that the links in notifications start with, as a phone reaches them; None means this machine."""

    boards: str | None = None
    runbooks: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Everything fleet.yml says."""

    replicas: tuple[Replica, ...]
    slos: Slos = field(default_factory=Slos)
    thresholds: ThresholdTable = field(default_factory=ThresholdTable)
    spare_replicas: int = 0
    models: Mapping[str, ModelPolicy] = field(default_factory=dict)
    oncall: Oncall = field(default_factory=Oncall)
    links: Links = field(default_factory=Links)
    exporter: Access = field(default_factory=Access)
    gpus: Gpus = field(default_factory=Gpus)

    def policy(self, model: str) -> ModelPolicy:
        """Return what is expected of a model, known here or not."""
        return self.models.get(model, ModelPolicy())


def load(path: Path) -> Fleet:
    """Read a fleet file and the files it includes. Raise FleetError for the first thing that cannot be used."""
    root = read(path)
    base = path.parent
    if root.value is None:
        root.refuse("a mapping with the key replicas")
    parts = root.mapping(optional=_SECTIONS)
    nodes = [*_replica_nodes(parts.get("replicas")), *_included(parts.get("include"), path)]
    replicas = tuple(_replica(node, base) for node in nodes)
    _refuse_duplicates(nodes, replicas)
    if not replicas and "include" not in parts:
        raise FleetError(f"{root.file}: replicas: expected at least one replica (name, url), got none")
    fleet = Fleet(
        replicas=replicas,
        slos=slos(parts["slos"]) if "slos" in parts else Slos(),
        thresholds=thresholds(parts["thresholds"]) if "thresholds" in parts else ThresholdTable(),
        spare_replicas=parts["spare_replicas"].count() if "spare_replicas" in parts else 0,
        models=_policies(parts["models"]) if "models" in parts else {},
        oncall=oncall(parts["oncall"], base) if "oncall" in parts else Oncall(),
        links=_links(parts["links"]) if "links" in parts else Links(),
        exporter=access(parts["exporter"], base) if "exporter" in parts else Access(),
        gpus=gpus(parts["gpu"], base) if "gpu" in parts else Gpus(),
    )
    _refuse_unknown_models(root, fleet)
    return fleet


def _replica_nodes(node: Node | None) -> Iterable[Node]:
    return node.items() if node else ()


def _included(node: Node | None, root: Path) -> Iterable[Node]:
    """Yield the replicas of the files that `include` patterns match, in the order of their names."""
    for pattern in node.items() if node else ():
        text = includes.pattern(pattern)
        found = includes.included_files(text, root.parent)
        if any(file.resolve() == root.resolve() for file in found):
            pattern.refuse(f"a pattern that leaves out {root.name} itself")
        if not found and not any(c in text for c in "*?["):
            pattern.refuse("the path of an existing file, or a pattern")
        for file in found:
            yield from _replica_nodes(read(file).mapping(optional=("replicas",)).get("replicas"))


def _replica(node: Node, base: Path) -> Replica:
    parts = node.mapping(
        required=("name", "url"), optional=("model", "engine", "api_key_file", "tls", "gpus", "labels")
    )
    name = parts["name"].text("a name")
    if not _NAME.fullmatch(name):
        parts["name"].refuse("a name of up to 63 letters, digits, '.', '_' and '-', starting with a letter or digit")
    engine = parts["engine"].text() if "engine" in parts else None
    if engine is not None and engine not in catalogue.ENGINE.values:
        parts["engine"].refuse(f"one of: {', '.join(catalogue.ENGINE.values)}")
    url, key, authorities = guarded(parts, base, "replica")
    return Replica(
        name=name,
        url=url,
        model=parts["model"].text("a model name") if "model" in parts else None,
        engine=engine,
        api_key_file=key,
        ca_file=authorities,
        gpus=card_names(parts["gpus"]) if "gpus" in parts else (),
        labels=_labels(parts["labels"]) if "labels" in parts else {},
    )


def _labels(node: Node) -> dict[str, str]:
    labels = {}
    for key, value in node.entries("a mapping from label to text").items():
        if not _LABEL.fullmatch(key) or key.startswith("__"):
            raise FleetError(f"{node.place}: expected label names of letters, digits and '_', got {key!r}")
        if key in _RESERVED_LABELS:
            raise FleetError(f"{node.place}: label {key!r} is Servewatch's own; choose another name")
        labels[key] = value.text()
    return labels


def _policies(node: Node) -> dict[str, ModelPolicy]:
    policies = {}
    for model, value in node.entries("a mapping from model to its policy").items():
        parts = value.mapping(optional=("min_ready",))
        policies[model] = ModelPolicy(min_ready=_min_ready(parts["min_ready"]) if "min_ready" in parts else 1)
    return policies


def _min_ready(node: Node) -> int:
    if node.count() > 1:
        node.refuse("0 (may scale to zero) or 1; how many more must stand by is said in spare_replicas")
    return node.count()


def _links(node: Node) -> Links:
    parts = node.mapping(optional=("boards", "runbooks"))
    return Links(**{key: value.link().rstrip("/") for key, value in parts.items()})


def _refuse_duplicates(nodes: list[Node], replicas: tuple[Replica, ...]) -> None:
    names: dict[str, Node] = {}
    servers: dict[tuple[str | None, int], list[tuple[Node, Replica]]] = {}
    for node, replica in zip(nodes, replicas, strict=True):
        if replica.name in names:
            raise _taken(node, "name", replica.name, names[replica.name], "give each replica its own name")
        names[replica.name] = node
        there = servers.setdefault(server(replica.url), [])
        for first, other in there:
            if not _are_models_of_one_router(replica, other):
                is_router = {replica.engine, other.engine} <= {None, *_ROUTERS}
                raise _taken(node, "url", replica.url, first, _OWN_MODEL if is_router else _OWN_URL)
        there.append((node, replica))


def _taken(node: Node, key: str, value: str, first: Node, remedy: str) -> FleetError:
    return FleetError(f"{node.child(key).place}: {value!r} is already taken by {first.place}; {remedy}")


def _are_models_of_one_router(one: Replica, other: Replica) -> bool:
    """Tell whether two replicas may share a server: each must say which of a router's models it is."""
    is_told_apart = one.model is not None and other.model is not None and one.model != other.model
    return is_told_apart and {one.engine, other.engine} <= set(_ROUTERS)


def _refuse_unknown_models(root: Node, fleet: Fleet) -> None:
    """Refuse a policy for a model that no replica serves, where every replica says what it serves."""
    served = {replica.model for replica in fleet.replicas}
    if None in served:
        return
    places = (
        (("slos", "models"), fleet.slos.models),
        (("thresholds", "models"), fleet.thresholds.models),
        (("models",), fleet.models),
    )
    for keys, names in places:
        for name in names:
            if name not in served:
                raise _unserved(reduce(Node.child, (*keys, name), root), name, sorted(filter(None, served)))


def _unserved(node: Node, name: str, served: list[str]) -> FleetError:
    spelt = {model.casefold(): model for model in served}
    alike = get_close_matches(name.casefold(), spelt, n=1)
    guess = f"did you mean {spelt[alike[0]]!r}? " if alike else ""
    known = ", ".join(served) or "none"
    return FleetError(f"{node.place}: no replica serves {name!r}; {guess}models served: {known}")
