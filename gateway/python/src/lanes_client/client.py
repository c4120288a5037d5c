"""The client: appends data to a table, and returns when it is acknowledged."""

from __future__ import annotations

import http.client
import itertools
import random
import ssl
import time
import urllib.parse
import uuid
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Optional, Union

from . import arrow, batch, frames, infer
from .columns import Column
from .errors import Refused, Unavailable, refused
from .transport import Answer, Transport
from .types import ROWS_MAX, ColumnType

_FLATBUFFERS = "application/x-flatbuffers"
_ARROW_STREAM = "application/vnd.apache.arrow.stream"
_ACK_LEVELS = ("memory", "wal", "replica", "object")
_RETRIED = (429, 502, 503, 504)
_BACKOFF_FIRST_SECONDS = 0.1
_BACKOFF_MAX_SECONDS = 5.0
_RETRY_AFTER_MAX_SECONDS = 60.0


class Client:
    """A client of one gateway. Threads may share it.

    ``url``
        The address of the gateway, such as ``http://127.0.0.1:9201``.
    ``ack``
        The promise of an acknowledgement: ``memory`` (committed and visible), ``wal`` (also on disk), ``replica`` (also on standbys),
        ``object`` (on disk, and also in object storage).
        With ``None``, the gateway's own setting applies.
    ``timeout``
        The seconds to connect, and to wait for each part of an answer.
    ``retries``
        How often a request is repeated after a lost connection, or after 429, 502, 503 or 504, before :class:`Unavailable` is raised.
        The pause before each repetition is that of Retry-After (at most a minute); otherwise it doubles from about 0.1 s to about 5 s.
    ``rows_max``, ``bytes_max``
        The limits of one request. More rows become several requests. The gateway's limits are ``events.rows_max`` and
        ``receive.body_bytes_max``.
    ``headers``
        Additional headers of each request, for example for a proxy that requires authentication.
    ``ssl_context``
        The context for ``https``, if not the default.
    """

    def __init__(
        self,
        url: str,
        ack: Optional[str] = "wal",
        timeout: float = 30.0,
        retries: int = 8,
        rows_max: int = 65_536,
        bytes_max: int = 8 << 20,
        headers: Optional[Mapping[str, str]] = None,
        ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        if ack is not None and ack not in _ACK_LEVELS:
            raise ValueError(f"ack is {ack!r}, not one of {', '.join(_ACK_LEVELS)}")
        if not 1 <= rows_max <= ROWS_MAX:
            raise ValueError(f"rows_max is {rows_max}, not 1 to {ROWS_MAX}")
        if retries < 0:
            raise ValueError("retries must not be negative")
        self._transport = Transport(url, timeout, ssl_context)
        self._retries = retries
        self._rows_max = rows_max
        self._bytes_max = bytes_max
        self._headers = dict(headers or {})
        if ack is not None:
            self._headers["X-Lanes-Ack"] = ack

    def append(
        self,
        table: str,
        data: Any,
        *,
        types: Optional[Mapping[str, Union[ColumnType, str]]] = None,
        nan_is_null: bool = False,
        key: Optional[str] = None,
    ) -> int:
        """Appends rows to a table. Returns their number once all of them are acknowledged.

        ``table``
            ``name`` or ``schema.name``. Columns are matched by name; columns that are not sent get their default, or NULL.
        ``data``
            A mapping from column names to NumPy arrays, pandas Series or lists; a ``pandas.DataFrame``, whose index is
            sent as columns with its names; or a ``pyarrow.Table`` or ``RecordBatch``, which is sent unchanged (without ``types`` and
            ``nan_is_null``).
        ``types``
            Columns to be sent with another type than their values suggest: ``{"id": "uuid", "day": "date"}``.
        ``nan_is_null``
            Whether NaN is sent as NULL.
        ``key``
            Identifies this call, so that it can be repeated with the same data after :class:`Unavailable`, or by another process. Rows
            that are stored already are not stored again, for as long as the gateway keeps digests (``requests.window``). Without a key,
            each call is new.

        Raises :class:`DataError` before anything is sent, and :class:`Refused` or :class:`Unavailable` afterwards. Each request is stored
        as a whole or not at all. A call with more rows than fit into one request sends several.
        """
        path = "/api/v1/events/" + urllib.parse.quote(table, safe="")
        if arrow.is_arrow(data):
            if types or nan_is_null:
                raise ValueError("an Arrow table is sent unchanged: types and nan_is_null cannot be used with it")
            content_type, requests = _ARROW_STREAM, arrow.streams(data, self._rows_max, self._bytes_max)
        else:
            columns = _columns(data, types or {}, nan_is_null)
            batch.rows_of(columns)
            content_type, requests = _FLATBUFFERS, batch.batches(columns, self._rows_max, self._bytes_max)
        acknowledged = 0
        keys = _keys(key)
        for rows, body in requests:
            headers = {**self._headers, "Content-Type": content_type, "Idempotency-Key": next(keys)}
            try:
                self._send(path, headers, body)
            except (Refused, Unavailable) as error:
                error.rows_acknowledged = acknowledged
                raise
            acknowledged += rows
        return acknowledged

    def close(self) -> None:
        """Closes idle connections. The client can still be used."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()

    def _send(self, path: str, headers: Mapping[str, str], body: bytes) -> None:
        """Sends one request until it is acknowledged. Each repetition has the same key, so the request is stored once."""
        for attempt in itertools.count():
            answer: Optional[Answer] = None
            try:
                answer = self._transport.post(path, headers, body)
                if 200 <= answer.status < 300:
                    return
                reason = f"{answer.status}: {answer.body}"
                if answer.status not in _RETRIED:
                    raise refused(answer.status, answer.body)
            except (OSError, http.client.HTTPException) as error:
                reason = str(error) or type(error).__name__
            if attempt == self._retries:
                raise Unavailable(f"not acknowledged after {attempt + 1} attempts; the last error: {reason}")
            time.sleep(_pause(attempt, answer))


def _pause(attempt: int, answer: Optional[Answer]) -> float:
    """Returns the seconds until the next attempt, with a random part so that many clients do not return at the same time."""
    if answer is not None and answer.retry_after is not None:
        return min(answer.retry_after, _RETRY_AFTER_MAX_SECONDS) * random.uniform(1.0, 1.1)
    return min(_BACKOFF_FIRST_SECONDS * 2.0**attempt, _BACKOFF_MAX_SECONDS) * random.uniform(0.5, 1.0)


def _keys(key: Optional[str]) -> Iterator[str]:
    """Returns the keys of a call's requests.

    Equal data is split equally, so the n-th request of a repeated call has the same key.
    """
    if key is None:
        return (str(uuid.uuid4()) for _ in itertools.count())
    if not key or not key.isascii() or not key.isprintable() or len(key) > 200:
        raise ValueError("a key has 1 to 200 printable ASCII characters")
    return (f"{key}/{number}" for number in itertools.count())


def _columns(data: Any, types: Mapping[str, Union[ColumnType, str]], nan_is_null: bool) -> dict[str, Column]:
    if not frames.is_frame(data) and not isinstance(data, Mapping):
        raise TypeError(f"data is {type(data).__name__}; use a mapping, a pandas.DataFrame, a pyarrow.Table or RecordBatch")
    wanted = {name: ColumnType.of(one) for name, one in types.items()}
    columns: dict[str, Column] = {}
    for name, values in frames.items(data) if frames.is_frame(data) else data.items():
        name = str(name)
        if name in columns:
            raise ValueError(f"column {name!r} occurs twice")
        convert = frames.column if frames.is_series(values) else infer.column
        column = convert(name, values, wanted.pop(name, None))
        columns[name] = infer.without_nan(column) if nan_is_null else column
    if wanted:
        raise ValueError(f"types names columns that are not in the data: {', '.join(sorted(wanted))}")
    return columns
