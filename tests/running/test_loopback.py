"""Questions to our own servers: whatever comes back, a caller meets only the errors it expects."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from running.loopback import answers, read_json


@contextmanager
def dying(said: bytes) -> Iterator[str]:
    """Serve one connection: say this much, then die."""

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(said)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Thread(target=serve)
        server.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        server.join()


HALF = [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", b"nonsense\r\n\r\n", b""]


@pytest.mark.parametrize("said", HALF, ids=["half a body", "no status", "nothing"])
def test_a_server_that_dies_while_it_answers_is_a_broken_connection(said: bytes) -> None:
    with dying(said) as url, pytest.raises((OSError, ValueError)):
        read_json(url)


def test_a_server_that_talks_nonsense_does_not_answer() -> None:
    with dying(b"nonsense\r\n\r\n") as url:
        assert not answers(url)
