"""Conversion of a pandas.DataFrame to columns. The columns of its index come first, unless it only numbers the rows.

Values that are missing in pandas become NULL, except for NaN in columns of plain floats, which stays NaN unless ``nan_is_null``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

import numpy as np

from . import infer
from .columns import Bools, Coded, Column, Fixed, validity_of
from .errors import DataError
from .types import ColumnType


def is_frame(data: Any) -> bool:
    """Returns whether this is a DataFrame, without importing pandas."""
    return any(kind.__name__ == "DataFrame" and kind.__module__.split(".")[0] == "pandas" for kind in type(data).__mro__)


def is_series(values: Any) -> bool:
    """Returns whether this is a Series, without importing pandas."""
    return any(kind.__name__ == "Series" and kind.__module__.split(".")[0] == "pandas" for kind in type(values).__mro__)


def items(frame: Any) -> Iterator[tuple[Any, Any]]:
    """Yields names and Series: first of the index, unless it is pandas' own numbering of rows, then of the columns.

    Raises :class:`DataError`.
    """
    index = frame.index
    is_numbering = type(index).__name__ == "RangeIndex" and index.name is None
    for level, name in enumerate([] if is_numbering else index.names):
        if name is None:
            raise DataError(
                "the index has no name, so there is no column for it: name it, data.rename_axis('ts'), "
                "or leave it out, data.reset_index(drop=True)"
            )
        yield name, index.get_level_values(level).to_series()
    yield from frame.items()


def column(name: str, series: Any, wanted: Optional[ColumnType]) -> Column:
    """Returns the column of a Series. Raises :class:`DataError`, which names the column."""
    try:
        return _column(series, wanted)
    except (DataError, OverflowError, TypeError, UnicodeEncodeError) as error:
        raise DataError(f"column {name!r}: {error}") from error


def _column(series: Any, wanted: Optional[ColumnType]) -> Column:
    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return infer.array(series.to_numpy(), None, wanted)
    is_null = np.asarray(series.isna(), np.bool_)
    if hasattr(series, "cat"):
        return _categories(series, is_null, wanted)
    if hasattr(series, "dt") and getattr(dtype, "tz", None) is not None:
        return infer.array(series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(), None, wanted)
    plain = getattr(dtype, "numpy_dtype", None)
    if isinstance(plain, np.dtype) and plain.kind in "biuf":
        values = series.to_numpy(dtype=plain, na_value=plain.type(0))
        return infer.array(values, is_null, wanted)
    return infer.objects([None if null else value for value, null in zip(series, is_null)], wanted)


def _categories(series: Any, is_null: Any, wanted: Optional[ColumnType]) -> Column:
    """Returns the column of a categorical Series.

    Categories of text become the items of a dictionary; others are looked up row by row.
    """
    categories = infer.objects(list(series.cat.categories), wanted)
    codes = np.where(is_null, 0, series.cat.codes.to_numpy()).astype(np.int64)
    validity = validity_of(is_null)
    if not len(categories):
        return infer.objects([None] * len(series), wanted)
    if isinstance(categories, Fixed):
        return Fixed(categories.type, categories.values[codes], validity)
    if isinstance(categories, Bools):
        return Bools(categories.values[codes], validity)
    items = categories.items if not isinstance(categories, Coded) else [categories.items[code] for code in categories.codes]
    # A slice keeps only the used items: there may be more categories than rows.
    return Coded(categories.type, codes.astype(np.uint32), items, validity).slice(0, len(series))
