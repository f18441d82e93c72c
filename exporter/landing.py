"""Landing: the page for a person. In: the last known outcome of each replica. Out: HTML; nothing is scraped for it."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import jinja2

from exporter import __version__
from exporter.engines import ENGINES
from exporter.failures import State
from exporter.service import Service
from exporter.watch import Watch

__all__ = ["landing"]

_TEMPLATE = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
).get_template("landing.html")
_WORDS = {
    State.READY: "ready",
    State.LOADING: "loading",
    State.SLEEPING: "asleep",
    State.DRAINING: "draining",
    State.STUCK: "stuck",
    State.DENIED: "denies access",
    State.DISABLED: "metrics off",
    State.UNREACHABLE: "unreachable",
    State.BROKEN: "page unusable",
}
_CALM = frozenset({State.READY, State.SLEEPING, State.DRAINING})
_OLD = 60.0  # seconds; a page that nobody asked for since says little about now


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One replica, in words."""

    name: str
    href: str
    url: str
    engine: str
    model: str
    state: str
    words: str
    trouble: bool
    running: str
    waiting: str
    age: str
    old: bool
    took: str
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pool:
    """The replicas of one model."""

    model: str
    rows: tuple[_Row, ...]

    @property
    def ready(self) -> int:
        """How many replicas answer requests now."""
        return sum(row.state == State.READY for row in self.rows)

    @property
    def trouble(self) -> int:
        """How many replicas somebody should look at."""
        return sum(row.trouble for row in self.rows)


def landing(service: Service) -> str:
    """Write the landing page."""
    now = time.time()
    rows = [_row(watch, service.model_of(watch), _remarks(service, watch), now) for watch in service.watches.values()]
    seen = [watch.last for watch in service.watches.values() if watch.last is not None]
    return _TEMPLATE.render(
        pools=_pools(rows),
        replicas=len(rows),
        ready=sum(row.state == State.READY for row in rows),
        trouble=sum(row.trouble for row in rows),
        unseen=len(rows) - len(seen),
        running=_sum(outcome.running for outcome in seen),
        waiting=_sum(outcome.waiting for outcome in seen),
        refused=service.refused,
        version=__version__,
        shard=service.options.shard,
        elsewhere=len(service.fleet.replicas) - len(rows),
    )


def _pools(rows: Iterable[_Row]) -> list[_Pool]:
    """Sort replicas into pools, those in trouble first."""
    by_model: dict[str, list[_Row]] = {}
    for row in sorted(rows, key=lambda row: (not row.trouble, row.name)):
        by_model.setdefault(row.model, []).append(row)
    pools = [_Pool(model=model, rows=tuple(found)) for model, found in by_model.items()]
    return sorted(pools, key=lambda pool: (not pool.trouble, pool.model))


def _remarks(service: Service, watch: Watch) -> tuple[str, ...]:
    """Say what a person should know of a replica: planned work, its last failure or notes, cards that nobody shows."""
    name, last = watch.replica.name, watch.last
    drain = service.drains.of(name)
    planned = (f"marked by {drain.by} as draining until {drain.end}",) if drain else ()
    of_last = ((last.sentence,) if last.sentence else last.notes) if last else ()
    return (*planned, *of_last, *service.gpus.remarks.get(name, ()))


def _row(watch: Watch, model: str, remarks: tuple[str, ...], now: float) -> _Row:
    last = watch.last
    engine = ENGINES.get(last.engine if last else watch.replica.engine or "")
    age = max(0.0, now - last.at) if last else 0.0  # the clock may have been set back
    return _Row(
        name=watch.replica.name,
        href=f"probe?target={quote(watch.replica.name)}",
        url=watch.replica.url,
        engine=engine.title if engine else (watch.replica.engine or "not recognised yet"),
        model=model,
        state=last.state.value if last else "unseen",
        words=_WORDS[last.state] if last else "not asked yet",
        trouble=last is not None and last.state not in _CALM,
        running=_count(last.running if last else None),
        waiting=_count(last.waiting if last else None),
        age=_age(age) if last else "",
        old=age > _OLD,
        took=_took(last.duration) if last else "",
        remarks=remarks,
    )


def _count(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _sum(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    return _count(sum(known)) if known else ""


def _age(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"


def _took(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
