"""Sends columns of values to tables through lanes-gateway, exactly once.

The path of the data::

    dict, numpy, list ── columns ──┐
    pandas.DataFrame ─── frames ───┴─► batch (FlatBuffers) ─┐
    pyarrow.Table ────── arrow (Arrow IPC stream) ──────────┴─► client ── HTTP POST, repeated with its key ──► gateway

=============  ==========================================================================================
module         contents
=============  ==========================================================================================
``types``      the types of a batch's columns, and the limits of a batch
``columns``    a column that is ready to be written, and its slices
``infer``      values of Python and NumPy to a column
``frames``     a pandas.DataFrame to columns
``batch``      columns to the bytes of a batch, and the split of many rows into batches
``arrow``      pyarrow tables to Arrow IPC streams
``transport``  an HTTP exchange over a pooled connection
``client``     :class:`Client`: appends data to a table, and returns when it is acknowledged
``errors``     the exceptions, by what the caller should do
=============  ==========================================================================================

Nothing is sent before all columns have been converted: data that cannot be written raises :class:`DataError` and stores nothing.
"""

from .client import Client
from .errors import (
    BadRequest,
    DataError,
    Forbidden,
    LanesError,
    NotFound,
    Refused,
    Unavailable,
)
from .types import ColumnType

__all__ = [
    "BadRequest",
    "Client",
    "ColumnType",
    "DataError",
    "Forbidden",
    "LanesError",
    "NotFound",
    "Refused",
    "Unavailable",
]
