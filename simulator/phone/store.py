"""Where the phone keeps its messages: in memory, and in a file of JSON lines that outlives a restart.

A torn last line, as a crash leaves it, is passed over. The file is rewritten when it holds twice what is kept.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from simulator.phone.messages import Message, PayloadError, parse_stored, stored

KEPT = 1000  # messages


class Store:
    """The messages of one phone, each identity once."""

    def __init__(self, path: Path | None, *, kept: int = KEPT) -> None:
        self._path = path
        self._kept = kept
        self._messages: dict[tuple[str, ...], Message] = {}
        self._lines = 0
        self._missing_newline = False
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            for message in self._read(path):
                self._keep(message)

    def newest_first(self) -> list[Message]:
        """List what is kept."""
        return sorted(self._messages.values(), key=lambda message: message.received_at)[::-1]

    def add(self, messages: list[Message]) -> bool:
        """Keep what is new; tell whether anything was. Of a heartbeat the last one counts."""
        fresh = [
            message for message in messages if message.receiver == "heartbeat" or message.identity not in self._messages
        ]
        for message in fresh:
            self._keep(message)
        if fresh and self._path is not None:
            self._append(self._path, fresh)
        return bool(fresh)

    def clear(self) -> None:
        """Forget everything."""
        self._messages.clear()
        if self._path is not None:
            self._rewrite(self._path)

    def _keep(self, message: Message) -> None:
        self._messages.pop(message.identity, None)
        self._messages[message.identity] = message
        while len(self._messages) > self._kept:
            del self._messages[next(iter(self._messages))]

    def _read(self, path: Path) -> Iterator[Message]:
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            return
        self._missing_newline = bool(text) and not text.endswith(b"\n")
        for line in text.splitlines():
            self._lines += 1
            try:
                yield parse_stored(json.loads(line))
            except (ValueError, RecursionError, PayloadError):
                continue  # torn by a crash, or not ours

    def _append(self, path: Path, messages: list[Message]) -> None:
        self._lines += len(messages)
        if self._lines > 2 * self._kept:
            self._rewrite(path)
            return
        lines = "".join(json.dumps(stored(message)) + "\n" for message in messages)
        with path.open("a", encoding="utf-8") as file:
            file.write("\n" + lines if self._missing_newline else lines)
        self._missing_newline = False

    def _rewrite(self, path: Path) -> None:
        beside = path.with_name(path.name + ".new")
        lines = "".join(json.dumps(stored(message)) + "\n" for message in self._messages.values())
        beside.write_text(lines, encoding="utf-8")
        beside.replace(path)
        self._lines = len(self._messages)
        self._missing_newline = False
