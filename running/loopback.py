"""Questions to our own servers: in, a loopback address; out, whether and what it answers. A proxy never sees them."""

import json
import urllib.request
from http import HTTPStatus
from http.client import HTTPException
from typing import Any

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def answers(url: str, *, seconds: float = 2) -> bool:
    """Tell whether the address answers 200 within the time."""
    try:
        with _DIRECT.open(url, timeout=seconds) as response:
            return bool(response.status == HTTPStatus.OK)
    except (OSError, ValueError, HTTPException):
        return False


def read_json(url: str, *, seconds: float = 2) -> Any:  # noqa: ANN401 - whatever the server says
    """Answer the JSON document at the address; raises OSError or ValueError."""
    try:
        with _DIRECT.open(url, timeout=seconds) as response:
            return json.load(response)
    except HTTPException as error:  # the server died while it answered
        raise ConnectionError(f"{url}: half an answer: {error!r}") from error
