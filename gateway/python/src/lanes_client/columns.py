"""One column ready to be written, and its slices.

Four forms, one class each: :class:`Fixed` (numbers, times, UUIDs), :class:`Bools`, :class:`Plain` (an item a row) and :class:`Coded`
(a code a row into items). ``validity`` is ``None`` when no row is NULL, else an array of booleans, true where there is a value. Values
of NULL rows mean nothing to the reader, but are 0 here, so that equal data gives equal bytes.
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
    """Values of one width each."""

    type: ColumnType
    values: NDArray[Any]
    """Of a dtype of ``FIXED_DTYPES``."""
    validity: Validity

    def __len__(self) -> int:
        return len(self.values)

    def slice(self, start: int, stop: int) -> Fixed:
        return replace(self, values=self.values[start:stop], validity=_slice(self.validity, start, stop))


@dataclass(frozen=True)
class Bools:
    """Booleans; a bitmap when written."""

    values: NDArray[np.bool_]
    validity: Validity
    type: ColumnType = ColumnType.BOOL

    def __len__(self) -> int:
        return len(self.values)

    def slice(self, start: int, stop: int) -> Bools:
        return replace(self, values=self.values[start:stop], validity=_slice(self.validity, start, stop))


@dataclass(frozen=True)
class Plain:
    """Text or bytes, an item a row; NULL rows have an empty one."""

    type: ColumnType
    items: list[bytes]
    validity: Validity

    def __len__(self) -> int:
        return len(self.items)

    def slice(self, start: int, stop: int) -> Plain:
        return replace(self, items=self.items[start:stop], validity=_slice(self.validity, start, stop))


@dataclass(frozen=True)
class Coded:
    """Text or bytes, a code a row. Every code is below ``len(items)``, those of NULL rows too: there is at least one item if there are rows."""

    type: ColumnType
    codes: NDArray[np.uint32]
    items: list[bytes]
    validity: Validity

    def __len__(self) -> int:
        return len(self.codes)

    def slice(self, start: int, stop: int) -> Coded:
        """Only the items that these rows use stay."""
        used, codes = np.unique(self.codes[start:stop], return_inverse=True)
        return Coded(
            self.type,
            codes.reshape(-1).astype(np.uint32),
            [self.items[code] for code in used],
            _slice(self.validity, start, stop),
        )


Column = Union[Fixed, Bools, Plain, Coded]


def validity_of(is_null: NDArray[np.bool_]) -> Validity:
    """The validity of rows that are NULL where ``is_null``."""
    return ~is_null if is_null.any() else None


def _slice(validity: Validity, start: int, stop: int) -> Validity:
    if validity is None or validity[start:stop].all():
        return None
    return validity[start:stop]
