"""Sends columns of values to tables through lanes-gateway, exactly once.

The way of the data::

    dict, numpy, list ── columns ──┐
    pandas.DataFrame ─── frames ───┴─► batch (FlatBuffers) ─┐
    pyarrow.Table ────── arrow (Arrow IPC stream) ──────────┴─► client ── HTTP POST, repeated with its key ──► gateway

=============  ==========================================================================================
module         one thing
=============  ==========================================================================================
``types``      the types of a batch's columns, and their bounds
``columns``    one column ready to be written, and its slices
``infer``      values of Python and NumPy to a column
``frames``     a pandas.DataFrame to columns
``batch``      columns to the bytes of one batch, and the split of many rows into batches
``arrow``      pyarrow tables to Arrow IPC streams
``transport``  one HTTP exchange over a kept connection
``client``     :class:`Client`: a table's name and data in, acknowledged rows out
``errors``     what can go wrong, by what to do about it
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
