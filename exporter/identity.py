"""Identity: which model and engine a replica had when it last answered; kept over restarts in one JSON file.

A replica that is gone must still be known by its model, else a model that lost all its replicas would be silent.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

from exporter import catalogue, storage
from exporter.fleet import Replica
from exporter.tame import tamed

__all__ = ["Identities", "Identity"]

_FILE = "identities.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What was learned from a replica; `url` guards against a name that moved to another server."""

    url: str
    models: tuple[str, ...] = ()
    engine: str = ""

    @property
    def model(self) -> str:
        """The one model; empty where none or, from a router, several are known."""
        return self.models[0] if len(self.models) == 1 else ""


class Identities:
    """Learned identities by replica name, in memory and, with a directory, on disk."""

    def __init__(self, directory: Path | None) -> None:
        """Read what an earlier run learned; a file that cannot be used is ignored with a warning."""
        self._file = directory / _FILE if directory else None
        self._known: dict[str, Identity] = _read(self._file) if self._file else {}
        self._is_news = False

    @property
    def is_news(self) -> bool:
        """Tell whether there is anything to bring to disk."""
        return self._file is not None and self._is_news

    def of(self, replica: Replica) -> Identity:
        """Answer what is known: configuration first, then what was learned at the same address."""
        learned = self._known.get(replica.name)
        if learned is None or learned.url != replica.url:
            learned = Identity(url=replica.url)
        models = (replica.model,) if replica.model else learned.models
        return Identity(url=replica.url, models=models, engine=replica.engine or learned.engine)

    def learn(self, replica: Replica, *, models: tuple[str, ...], engine: str) -> None:
        """Remember what a page told; `keep` brings news to disk."""
        news = Identity(url=replica.url, models=tuple(filter(None, models)), engine=engine)
        if self._known.get(replica.name) != news:
            self._known[replica.name] = news
            self._is_news = True

    def keep_only(self, names: frozenset[str]) -> None:
        """Forget replicas that left the fleet."""
        gone = self._known.keys() - names
        for name in gone:
            del self._known[name]
            self._is_news = True

    def keep(self) -> None:
        """Write what is news to disk."""
        if self._file is not None and self._is_news:
            self._is_news = False
            content = {name: asdict(one) for name, one in tuple(self._known.items())}
            if not storage.write(self._file, content, lost="learned models"):
                self._is_news = True


def _read(file: Path) -> dict[str, Identity]:
    entries = storage.read(file, without="learned models").items()
    return {name: identity for name, entry in entries if (identity := _identity(entry)) is not None}


def _identity(entry: object) -> Identity | None:
    match entry:
        case {"url": str(url), "models": list(models), "engine": str(engine)} if all(
            isinstance(model, str) for model in models
        ):
            known = engine if engine in catalogue.ENGINE.values else ""  # a later version may have learned another
            return Identity(url=url, models=tuple(map(tamed, models)), engine=known)
    return None
