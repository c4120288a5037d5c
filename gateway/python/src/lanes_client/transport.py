"""HTTP exchanges over pooled connections. Threads may share a transport."""

from __future__ import annotations

import collections
import datetime
import email.utils
import http.client
import ssl
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class Answer:
    """The answer to a request."""

    status: int
    body: str
    retry_after: Optional[float]
    """The seconds of Retry-After, if the server sent it."""


class Transport:
    """Connections to one server. ``url`` is ``http://host:port`` or ``https://…``, possibly with a path that a proxy requires."""

    def __init__(self, url: str, timeout: float, ssl_context: Optional[ssl.SSLContext]) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"{url!r} is not an address such as http://127.0.0.1:9201")
        self._host = parts.hostname
        self._port = parts.port
        self._is_tls = parts.scheme == "https"
        self._prefix = parts.path.rstrip("/")
        self._timeout = timeout
        self._ssl_context = ssl_context
        self._idle: collections.deque[http.client.HTTPConnection] = collections.deque()

    def post(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Posts a body.

        Raises ``OSError`` or ``http.client.HTTPException`` if no complete answer arrives, and closes the connection.
        """
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        try:
            connection.request("POST", self._prefix + path, body, dict(headers))
            response = connection.getresponse()
            text = response.read().decode("utf-8", "replace").strip()
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        return Answer(response.status, text, _seconds(response.headers.get("Retry-After")))

    def close(self) -> None:
        """Closes idle connections."""
        while self._idle:
            self._idle.pop().close()

    def _connect(self) -> http.client.HTTPConnection:
        if self._is_tls:
            context = self._ssl_context or ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=context)
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)


def _seconds(header: Optional[str]) -> Optional[float]:
    """Returns the seconds of a Retry-After header, which contains seconds or a date."""
    if header is None:
        return None
    try:
        return max(0.0, float(int(header)))
    except ValueError:
        pass
    try:
        date = email.utils.parsedate_to_datetime(header)
        return max(0.0, (date - datetime.datetime.now(datetime.timezone.utc)).total_seconds())
    except (TypeError, ValueError):
        return None
