"""The column that each kind of values becomes, read back from the bytes of the batch."""

import datetime
import decimal
import math
import uuid

import numpy as np
import pandas as pd
import pytest
from reader import read

from lanes_client import ColumnType, DataError, batch, frames, infer

UTC = datetime.timezone.utc
ONE_UUID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")


def written(values, wanted=None):
    convert = frames.column if frames.is_series(values) else infer.column
    return read(batch.encode({"c": convert("c", values, wanted)}))["c"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([True, False, True]), ("BOOL", [True, False, True])),
        (np.array([-1, 2], np.int8), ("INT16", [-1, 2])),
        (np.array([255], np.uint8), ("INT16", [255])),
        (np.array([65535], np.uint16), ("INT32", [65535])),
        (np.array([-5], ">i4"), ("INT32", [-5])),
        (np.array([4294967295], np.uint32), ("INT64", [4294967295])),
        (np.array([1], np.uint64), ("INT64", [1])),
        (np.array([0.5], np.float16), ("FLOAT32", [0.5])),
        (np.array([0.5], np.float32), ("FLOAT32", [0.5])),
        (np.array([0.1]), ("FLOAT64", [0.1])),
        (np.arange(6)[::2], ("INT64", [0, 2, 4])),
        (np.array(["2024-01-01T00:00:01", "NaT"], "M8[s]"), ("TIMESTAMP", [1704067201000000, None])),
        (np.array([-1], "M8[ns]"), ("TIMESTAMP", [-1])),
        (np.array([1], "M8[h]"), ("TIMESTAMP", [3600000000])),
        (np.array(["1970-01-03"], "M8[D]"), ("DATE", [2])),
        (np.array(["a", "b"]), ("TEXT", ["a", "b"])),
        (np.array([b"a"]), ("BYTES", [b"a"])),
        (np.ma.masked_array([1.5, 2.5], [False, True]), ("FLOAT64", [1.5, None])),
        (np.ma.masked_array([True, True], [True, False]), ("BOOL", [None, True])),
        (np.ma.masked_array(np.array(["x", "y"], object), [True, False]), ("TEXT", [None, "y"])),
        ([1, None, 3], ("INT64", [1, None, 3])),
        ([1, 2.5, None], ("FLOAT64", [1.0, 2.5, None])),
        ([True, None], ("BOOL", [True, None])),
        (["é", None, ""], ("TEXT", ["é", None, ""])),
        ([decimal.Decimal("1.10"), None], ("TEXT", ["1.10", None])),
        ([b"\0\xff", bytearray(b"x")], ("BYTES", [b"\0\xff", b"x"])),
        ([datetime.datetime(1970, 1, 1, 0, 0, 1), None], ("TIMESTAMP", [1000000, None])),
        ([datetime.datetime(1970, 1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))], ("TIMESTAMP", [0])),
        ([datetime.date(1969, 12, 31)], ("DATE", [-1])),
        ([ONE_UUID, None], ("UUID", [ONE_UUID.bytes, None])),
        ([None, None], ("TEXT", [None, None])),
        ([np.datetime64("1970-01-01T00:00:01"), np.datetime64("NaT")], ("TIMESTAMP", [1000000, None])),
        ((value for value in ["g"]), ("TEXT", ["g"])),
        ([], ("TEXT", [])),
    ],
)
def test_values_of_python_and_numpy(values, expected):
    assert written(values) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pd.Series([1, pd.NA], dtype="Int32"), ("INT32", [1, None])),
        (pd.Series([True, pd.NA], dtype="boolean"), ("BOOL", [True, None])),
        (pd.Series([1.5, pd.NA], dtype="Float64"), ("FLOAT64", [1.5, None])),
        (pd.Series(["a", None]), ("TEXT", ["a", None])),
        (pd.Series(["a", pd.NA], dtype="string"), ("TEXT", ["a", None])),
        (pd.Series(["a", None], dtype=object), ("TEXT", ["a", None])),
        (pd.Series(["b", None, "a"], dtype="category"), ("TEXT", ["b", None, "a"])),
        (pd.Series([3, 1, 3], dtype="category"), ("INT64", [3, 1, 3])),
        (pd.Series([None, None], dtype="category"), ("TEXT", [None, None])),
        (pd.Series(pd.to_datetime(["1970-01-01 01:00", None]).tz_localize("Europe/Paris")), ("TIMESTAMP", [0, None])),
        (pd.Series(pd.to_datetime(["1970-01-01 00:00:01"])), ("TIMESTAMP", [1000000])),
        (pd.Series([1, 2], index=[7, 9]), ("INT64", [1, 2])),
    ],
)
def test_values_of_pandas(values, expected):
    assert written(values) == expected


def test_nan_is_a_value_unless_said_otherwise():
    column = infer.column("c", [math.nan, None, 1.0])
    kind, values = read(batch.encode({"c": column}))["c"]
    assert math.isnan(values[0]) and values[1:] == [None, 1.0]
    assert read(batch.encode({"c": infer.without_nan(column)}))["c"] == (kind, [None, None, 1.0])


@pytest.mark.parametrize(
    ("values", "wanted", "expected"),
    [
        ([1, 2], "int16", ("INT16", [1, 2])),
        ([1, 2], "float64", ("FLOAT64", [1.0, 2.0])),
        ([0.5], "float32", ("FLOAT32", [0.5])),
        ([str(ONE_UUID), None], "uuid", ("UUID", [ONE_UUID.bytes, None])),
        (np.array(["1970-01-02"], "M8[D]"), "timestamp", ("TIMESTAMP", [86400000000])),
        (np.array(["1970-01-02T05"], "M8[us]"), "date", ("DATE", [1])),
        ([None], "bool", ("BOOL", [None])),
        ([None], "uuid", ("UUID", [None])),
        ([None], "timestamp", ("TIMESTAMP", [None])),
    ],
)
def test_wanted_types(values, wanted, expected):
    assert written(values, ColumnType.of(wanted)) == expected


@pytest.mark.parametrize(
    ("values", "wanted", "told"),
    [
        ([1, "a"], None, "values of int, str have no common type"),
        ([True, 1], None, "values of bool, int"),
        ([2**63], None, "too large"),
        (np.array([2**63], np.uint64), None, "does not fit int64"),
        ([70000], "int16", "does not fit int16"),
        ([0.5], "int64", "contains float64, which is not sent as int64"),
        (["a"], "int64", "contains text, which is not sent as int64"),
        (["a"], "uuid", "counted from 1"),
        (np.array([1 + 2j]), None, "dtype complex128"),
        (np.array([1], "m8[s]"), None, "dtype timedelta64"),
        (np.zeros((2, 2)), None, "one dimension"),
        (np.array([2**62], "M8[s]"), None, "does not fit timestamp"),
        (np.array([2**40], "M8[D]"), None, "does not fit date"),
        ("abc", None, "one value per row, not str"),
        (5, None, "one value per row, not int"),
        (["\ud800"], None, "surrogates not allowed"),
        ([{}], None, "values of dict have no type in a batch; a json or jsonb column accepts text: json.dumps(value)"),
        ([[1]], None, "an array column accepts text"),
        ([datetime.timedelta(1)], None, "send seconds"),
        (np.array([1], "m8[s]"), None, "send seconds"),
        ([pd.Timedelta(1)], None, "send seconds"),
        (pd.Series(pd.period_range("2026-01", periods=2, freq="M")), None, ".dt.to_timestamp()"),
        ([datetime.time(1)], None, "send text, which a column of any type accepts"),
        ([1.0, math.nan], "int64", "convert the pandas column with .astype('Int64')"),
    ],
)
def test_what_cannot_be_written_names_the_column(values, wanted, told):
    convert = frames.column if frames.is_series(values) else infer.column
    with pytest.raises(DataError, match="column 'c': ") as caught:
        convert("c", values, wanted and ColumnType.of(wanted))
    assert told in str(caught.value)


def test_an_index_is_sent_by_its_names():
    times = pd.DatetimeIndex(["1970-01-01T00:00:01"], name="ts", tz="UTC")
    of = lambda frame: [name for name, _ in frames.items(frame)]  # noqa: E731
    frame = pd.DataFrame({"price": [1.5]}, index=times)
    assert of(frame) == ["ts", "price"]
    assert frames.column("ts", next(frames.items(frame))[1], None).values.tolist() == [1000000]
    assert of(frame.set_index("price", append=True)) == ["ts", "price"]
    assert of(frame.reset_index()) == ["ts", "price"]
    assert of(frame.reset_index()[:0]) == ["ts", "price"]
    for unnamed in (frame.rename_axis(None), pd.DataFrame({"price": [1.5]}, index=[7])):
        with pytest.raises(DataError, match=r"the index has no name.*reset_index\(drop=True\)"):
            of(unnamed)
