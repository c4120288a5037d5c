"""Conversion of values of Python and NumPy to a column.

| values | column |
|---|---|
| bool | BOOL |
| integers up to 16, 32, 64 bits | INT16, INT32, INT64; lists of int are INT64 |
| float16, float32; float64, float | FLOAT32; FLOAT64. NaN stays NaN |
| datetime64 of hours or finer, datetime | TIMESTAMP: microseconds, rounded down. UTC if there is no time zone |
| datetime64 of days or coarser, date | DATE |
| uuid.UUID | UUID |
| str; Decimal | TEXT |
| bytes, bytearray, memoryview; arrays of dtype S | BYTES |

Values masked by ``numpy.ma``, ``None``, ``NaT`` and ``pandas.NA`` become NULL. A column with only NULLs is TEXT, which every SQL type accepts.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Callable, Optional

import numpy as np
from numpy.typing import NDArray

from .columns import Bools, Coded, Column, Fixed, Plain, Validity, validity_of
from .errors import DataError
from .types import FIXED_DTYPES, ColumnType

_SAMPLE_ROWS = 4_096
"""The number of rows that decide whether text is encoded with a dictionary."""
_NUMBERS = (ColumnType.INT16, ColumnType.INT32, ColumnType.INT64, ColumnType.FLOAT32, ColumnType.FLOAT64)
_AS_TEXT = "send text, which a column of any type accepts: str(value)"
_AS_ARRAY = "an array column accepts text as PostgreSQL writes it, '{1,2}'; a jsonb column accepts json.dumps(value)"
_SECONDS = "send seconds, value / numpy.timedelta64(1, 's'), or text to an interval column: '1.5 s'"
_REMEDIES = {
    "dict": "a json or jsonb column accepts text: json.dumps(value)",
    "list": _AS_ARRAY,
    "tuple": _AS_ARRAY,
    "ndarray": _AS_ARRAY,
    "timedelta": _SECONDS,
    "timedelta64": _SECONDS,
    "m": _SECONDS,
    "Period": "convert a Series of periods with .dt.to_timestamp()",
}
"""What to send instead of values that no column accepts, by the name of their type or the letter of their dtype."""
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_EPOCH_DATE = datetime.date(1970, 1, 1)


def column(name: str, values: Any, wanted: Optional[ColumnType] = None) -> Column:
    """Returns the column of ``values``, with the type ``wanted`` if there is one.

    Raises :class:`DataError`, which names the column.
    """
    try:
        if isinstance(values, np.ma.MaskedArray):
            return array(values.data, np.ma.getmaskarray(values), wanted)
        if isinstance(values, np.ndarray):
            return array(values, None, wanted)
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise DataError(f"needs one value per row, not {type(values).__name__}")
        return objects(values if isinstance(values, Sequence) else list(values), wanted)
    except (DataError, OverflowError, TypeError, UnicodeEncodeError) as error:
        raise DataError(f"column {name!r}: {error}") from error


def array(values: NDArray[Any], is_null: Optional[NDArray[np.bool_]], wanted: Optional[ColumnType]) -> Column:
    """Returns the column of an array with one dimension."""
    if values.ndim != 1:
        raise DataError(f"needs one dimension, not {values.ndim}")
    kind = values.dtype.kind
    if kind in "OUT":
        listed = values.tolist()
        if is_null is not None:
            listed = [None if null else value for value, null in zip(listed, is_null)]
        return objects(listed, wanted)
    if kind == "M":
        nat = np.isnat(values)
        is_null = nat if is_null is None else is_null | nat
        if np.datetime_data(values.dtype)[0] == "generic":
            return objects([None] * len(values), wanted)
    validity = None if is_null is None else validity_of(is_null)
    if kind == "S":
        return items(ColumnType.BYTES, values.tolist(), validity, wanted)
    if kind == "M":
        unit = np.datetime_data(values.dtype)[0]
        found = ColumnType.DATE if unit in ("Y", "M", "W", "D") else ColumnType.TIMESTAMP
        chosen = wanted if wanted in (ColumnType.DATE, ColumnType.TIMESTAMP) else found
        _only(wanted, chosen)
        return Fixed(chosen, _times(values, chosen, validity), validity)
    if kind == "b":
        _only(wanted, ColumnType.BOOL)
        return Bools(_filled(values, validity), validity)
    if kind in "iuf":
        return _numbers(_filled(values, validity), validity, wanted)
    raise DataError(f"values of dtype {values.dtype} have no type in a batch; {_REMEDIES.get(kind, _AS_TEXT)}")


def objects(values: Sequence[Any], wanted: Optional[ColumnType]) -> Column:
    """Returns the column of Python's own values."""
    is_null = np.fromiter((_is_null(value) for value in values), np.bool_, len(values))
    validity = validity_of(is_null)
    kinds = {type(value) for value, null in zip(values, is_null) if not null}
    if not kinds:
        return _nulls(len(values), validity, wanted)
    if all(issubclass(kind, (bool, np.bool_)) for kind in kinds):
        return array(np.array([bool(value) and not null for value, null in zip(values, is_null)]), is_null, wanted)
    if any(issubclass(kind, (bool, np.bool_)) for kind in kinds):
        raise DataError(_mixed(kinds))
    if all(issubclass(kind, (int, np.integer)) for kind in kinds):
        whole = [0 if null else int(value) for value, null in zip(values, is_null)]
        return _numbers(np.array(whole, np.int64), validity, wanted)
    if all(issubclass(kind, (int, float, np.integer, np.floating)) for kind in kinds):
        real = np.array([0.0 if null else float(value) for value, null in zip(values, is_null)])
        return _numbers(real, validity, wanted)
    if all(issubclass(kind, (str, decimal.Decimal)) for kind in kinds):
        text = [None if null else str(value) for value, null in zip(values, is_null)]
        if wanted is ColumnType.UUID:
            return _convert(text, validity, ColumnType.UUID, wanted, lambda value: uuid.UUID(value).bytes)
        return items(ColumnType.TEXT, text, validity, wanted)
    if all(issubclass(kind, (bytes, bytearray, memoryview)) for kind in kinds):
        return items(ColumnType.BYTES, [b"" if null else bytes(value) for value, null in zip(values, is_null)], validity, wanted)
    if all(issubclass(kind, uuid.UUID) for kind in kinds):
        return _convert(values, validity, ColumnType.UUID, wanted, lambda value: value.bytes)
    if all(issubclass(kind, datetime.datetime) for kind in kinds):
        return _convert(values, validity, ColumnType.TIMESTAMP, wanted, _microseconds)
    if all(issubclass(kind, datetime.date) and not issubclass(kind, datetime.datetime) for kind in kinds):
        return _convert(values, validity, ColumnType.DATE, wanted, lambda value: (value - _EPOCH_DATE).days)
    if all(issubclass(kind, np.datetime64) for kind in kinds):
        return array(np.array([np.datetime64("NaT") if null else value for value, null in zip(values, is_null)]), is_null, wanted)
    raise DataError(_mixed(kinds))


def items(found: ColumnType, values: Sequence[Any], validity: Validity, wanted: Optional[ColumnType]) -> Column:
    """Returns a column of text or bytes, with a dictionary if its values repeat often."""
    _only(wanted, found)
    encode: Callable[[Any], bytes] = (lambda value: value.encode()) if found is ColumnType.TEXT else (lambda value: value)
    empty: Any = "" if found is ColumnType.TEXT else b""
    if validity is not None:
        values = [value if valid else empty for value, valid in zip(values, validity)]
    sample = values[:_SAMPLE_ROWS]
    if len(set(sample)) * 2 <= len(sample):
        places: dict[Any, int] = {}
        codes = np.fromiter((places.setdefault(value, len(places)) for value in values), np.uint32, len(values))
        if len(places) * 2 <= len(values):
            return Coded(found, codes, [encode(value) for value in places], validity)
    return Plain(found, [encode(value) for value in values], validity)


def without_nan(found: Column) -> Column:
    """Returns the column with NULL in place of NaN."""
    if not isinstance(found, Fixed) or found.values.dtype.kind != "f":
        return found
    is_null = np.isnan(found.values)
    if found.validity is not None:
        is_null |= ~found.validity
    validity = validity_of(is_null)
    return Fixed(found.type, _filled(found.values, validity), validity)


def _numbers(values: NDArray[Any], validity: Validity, wanted: Optional[ColumnType]) -> Fixed:
    kind, width = values.dtype.kind, values.dtype.itemsize
    if kind == "f":
        if width > 8:
            raise DataError(f"values of dtype {values.dtype} have no type in a batch; use float64")
        found = ColumnType.FLOAT32 if width <= 4 else ColumnType.FLOAT64
        chosen = wanted if wanted in (ColumnType.FLOAT32, ColumnType.FLOAT64) else found
    else:
        signed_width = width * 2 if kind == "u" else width
        found = {1: ColumnType.INT16, 2: ColumnType.INT16, 4: ColumnType.INT32}.get(signed_width, ColumnType.INT64)
        chosen = wanted if wanted in _NUMBERS else found
    _only(wanted, chosen)
    dtype = FIXED_DTYPES[chosen]
    if dtype.kind == "i" and values.size:
        least, greatest = np.iinfo(dtype).min, np.iinfo(dtype).max
        if int(values.min()) < least or int(values.max()) > greatest:
            raise DataError(f"a value does not fit {chosen.name.lower()}")
    return Fixed(chosen, values.astype(dtype), validity)


def _times(values: NDArray[Any], chosen: ColumnType, validity: Validity) -> NDArray[Any]:
    unit = "us" if chosen is ColumnType.TIMESTAMP else "D"
    valid = values if validity is None else values[validity]
    converted = valid.astype(f"datetime64[{unit}]")
    # NumPy may silently wrap around if the range of the coarse unit exceeds that of the fine one.
    is_coarser = np.can_cast(values.dtype, converted.dtype)
    numbers = converted.astype(np.int64)
    dtype = FIXED_DTYPES[chosen]
    fits = not numbers.size or (int(numbers.min()) >= np.iinfo(dtype).min and int(numbers.max()) <= np.iinfo(dtype).max)
    if not fits or (is_coarser and (converted.astype(values.dtype) != valid).any()):
        raise DataError(f"a time does not fit {chosen.name.lower()}")
    result = np.zeros(len(values), dtype)
    result[slice(None) if validity is None else validity] = numbers
    return result


def _convert(
    values: Sequence[Any],
    validity: Validity,
    found: ColumnType,
    wanted: Optional[ColumnType],
    convert: Callable[[Any], Any],
) -> Fixed:
    _only(wanted, found)
    result = np.zeros(len(values), FIXED_DTYPES[found])
    for row, value in enumerate(values):
        if validity is None or validity[row]:
            try:
                result[row] = convert(value)
            except ValueError as error:
                raise DataError(f"row {row + 1} (counted from 1): {error}") from error
    return Fixed(found, result, validity)


def _microseconds(value: datetime.datetime) -> int:
    if value.tzinfo is None:
        value = value.replace(tzinfo=datetime.timezone.utc)
    return (value - _EPOCH) // datetime.timedelta(microseconds=1)


def _nulls(rows: int, validity: Validity, wanted: Optional[ColumnType]) -> Column:
    chosen = ColumnType.TEXT if wanted is None else wanted
    if chosen is ColumnType.BOOL:
        return Bools(np.zeros(rows, np.bool_), validity)
    if chosen in (ColumnType.TEXT, ColumnType.BYTES):
        return Plain(chosen, [b""] * rows, validity)
    return Fixed(chosen, np.zeros(rows, FIXED_DTYPES[chosen]), validity)


def _is_null(value: Any) -> bool:
    # pandas.NA and pandas.NaT are recognised by name, so that pandas is not required.
    if value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, np.datetime64) and bool(np.isnat(value))


def _filled(values: NDArray[Any], validity: Validity) -> NDArray[Any]:
    """Returns the values, with 0 where they are NULL."""
    if validity is None:
        return values
    return np.where(validity, values, np.zeros(1, values.dtype))


def _only(wanted: Optional[ColumnType], found: ColumnType) -> None:
    if wanted is None or wanted is found:
        return
    message = f"contains {found.name.lower()}, which is not sent as {wanted.name.lower()}"
    if found in (ColumnType.FLOAT32, ColumnType.FLOAT64) and wanted in _NUMBERS:
        message += "; if NaN stands for missing integers, convert the pandas column with .astype('Int64')"
    raise DataError(message)


def _mixed(kinds: set[type]) -> str:
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    if len(kinds) > 1:
        return f"values of {names} have no common type in a batch; make them one type, or text: str(value)"
    # Types are recognised by name, because pandas is not required. A subclass is treated like its base.
    known = (_REMEDIES.get(base.__name__) for kind in kinds for base in kind.__mro__)
    return f"values of {names} have no type in a batch; {next(filter(None, known), _AS_TEXT)}"
