"""The types of a batch's columns, and a batch's bounds: those of the schema ``extension/wire/schema/batch.fbs``."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np


class ColumnType(enum.IntEnum):
    """What a column of a batch holds. Text goes into a column of any SQL type, by that type's input function."""

    BOOL = 1
    INT16 = 2
    INT32 = 3
    INT64 = 4
    FLOAT32 = 5
    FLOAT64 = 6
    TIMESTAMP = 7
    DATE = 8
    UUID = 9
    TEXT = 10
    BYTES = 11

    @classmethod
    def of(cls, name: ColumnType | str) -> ColumnType:
        """The type itself, or the one of this name in any case. Raises ``ValueError``."""
        if isinstance(name, ColumnType):
            return name
        try:
            return cls[name.upper()]
        except KeyError:
            known = ", ".join(one.name.lower() for one in cls)
            raise ValueError(f"there is no column type {name!r}; there are {known}") from None


FIXED_DTYPES: dict[ColumnType, np.dtype[Any]] = {
    ColumnType.INT16: np.dtype("<i2"),
    ColumnType.INT32: np.dtype("<i4"),
    ColumnType.INT64: np.dtype("<i8"),
    ColumnType.FLOAT32: np.dtype("<f4"),
    ColumnType.FLOAT64: np.dtype("<f8"),
    ColumnType.TIMESTAMP: np.dtype("<i8"),
    ColumnType.DATE: np.dtype("<i4"),
    ColumnType.UUID: np.dtype("V16"),
}
"""How the types of fixed width lie in a batch."""

ROWS_MAX = 16_777_216
"""Rows of one batch."""
COLUMNS_MAX = 1_600
"""Columns of one batch."""
NAME_BYTES_MAX = 63
"""Bytes of a column's name."""
