"""The types of a batch's columns, and the limits of a batch, as in the schema ``extension/wire/schema/batch.fbs``."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np


class ColumnType(enum.IntEnum):
    """The type of a column in a batch. Columns of any SQL type accept text, through the input function of the type."""

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
        """Returns the type itself, or the type with this name in any case. Raises ``ValueError``."""
        if isinstance(name, ColumnType):
            return name
        try:
            return cls[name.upper()]
        except KeyError:
            known = ", ".join(one.name.lower() for one in cls)
            raise ValueError(f"{name!r} is not a column type; the types are {known}") from None


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
"""The representation of the types of fixed width in a batch."""

ROWS_MAX = 16_777_216
"""The maximum number of rows in one batch."""
COLUMNS_MAX = 1_600
"""The maximum number of columns in one batch."""
NAME_BYTES_MAX = 63
"""The maximum bytes of a column's name."""
