"""A column that is ready to be written, and its slices.

There are four forms, with one class each: :class:`Fixed` (numbers, times, UUIDs), :class:`Bools`, :class:`Plain` (one item per row) and
:class:`Coded` (one code per row, which refers to an item). ``validity`` is ``None`` if no row is NULL, and otherwise an array of booleans
that is true where there is a value. Readers ignore the values of NULL rows; they are 0 here, so that equal data is encoded equally.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Optional, Union

import numpy as np
from numpy.typing import NDArray

from .types import ColumnType

Validity = Optional[NDArray[np.bool_]]


@dataclass(frozen=True)
class Fixed:
    """Values of fixed width."""

    type: ColumnType
    values: NDArray[Any]
    """An array with a dtype of ``FIXED_DTYPES``."""
    validity: Validity

    def __len__(self) -> int:
        return len(self.values)

    def slice(self, start: int, stop: int) -> Fixed:
        return replace(self, values=self.values[start:stop], validity=_slice(self.validity, start, stop))


@dataclass(frozen=True)
class Bools:
    """Booleans, written as a bitmap."""

    values: NDArray[np.bool_]
    validity: Validity
    type: ColumnType = ColumnType.BOOL

    def __len__(self) -> int:
        return len(self.values)

    def slice(self, start: int, stop: int) -> Bools:
        return replace(self, values=self.values[start:stop], validity=_slice(self.validity, start, stop))


@dataclass(frozen=True)
class Plain:
    """Text or bytes, one item per row. Rows that are NULL have an empty item."""

    type: ColumnType
    items: list[bytes]
    validity: Validity

    def __len__(self) -> int:
        return len(self.items)

    def slice(self, start: int, stop: int) -> Plain:
        return replace(self, items=self.items[start:stop], validity=_slice(self.validity, start, stop))


@dataclass(frozen=True)
class Coded:
    """Text or bytes, one code per row.

    Every code is below ``len(items)``, even for NULL rows, so there is at least one item if there are rows.
    """

    type: ColumnType
    codes: NDArray[np.uint32]
    items: list[bytes]
    validity: Validity

    def __len__(self) -> int:
        return len(self.codes)

    def slice(self, start: int, stop: int) -> Coded:
        """Returns the rows with only the items that they use."""
        used, codes = np.unique(self.codes[start:stop], return_inverse=True)
        return Coded(
            self.type,
            codes.reshape(-1).astype(np.uint32),
            [self.items[code] for code in used],
            _slice(self.validity, start, stop),
        )


Column = Union[Fixed, Bools, Plain, Coded]


def validity_of(is_null: NDArray[np.bool_]) -> Validity:
    """Returns the validity of rows that are NULL where ``is_null`` is true."""
    return ~is_null if is_null.any() else None


def _slice(validity: Validity, start: int, stop: int) -> Validity:
    if validity is None or validity[start:stop].all():
        return None
    return validity[start:stop]
