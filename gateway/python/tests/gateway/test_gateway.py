"""The client, the gateway and PostgreSQL together: sent data is stored unchanged."""

import datetime
import decimal
import uuid

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import lanes_client

UTC = datetime.timezone.utc
EVERY_TYPE = """o int, b boolean, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, ts timestamptz, tl timestamp, d date,
    u uuid, t text, c text, y bytea, n numeric, j jsonb"""
EVERY_VALUE = {
    "o": np.arange(4),
    "b": [True, None, False, True],
    "i2": np.ma.masked_array(np.array([-32768, 1, 2, 32767], np.int16), [0, 0, 1, 0]),
    "i4": np.array([-(2**31), 0, 1, 2**31 - 1], np.int32),
    "i8": [-(2**63), None, 0, 2**63 - 1],
    "f4": np.array([0.5, np.nan, -np.inf, 1e30], np.float32),
    "f8": [0.1, None, 5e-324, -0.0],
    "ts": np.array(["1969-12-31T23:59:59.999999", "NaT", "2024-02-29T12:00", "9999-12-31T23:59"], "M8[us]"),
    "tl": [datetime.datetime(2024, 1, 1, 1, 2, 3, 4), None, datetime.datetime(1, 1, 1), datetime.datetime(2024, 1, 1, 12, tzinfo=UTC)],
    "d": [datetime.date(2024, 2, 29), None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
    "u": [uuid.UUID(int=1), None, uuid.UUID(int=2**128 - 1), uuid.UUID(int=0)],
    "t": ["", None, "näïve \U0001f600", "a/b"],
    "c": pd.Categorical(["x", None, "x", "y"], ["y", "x", "unused"]),
    "y": [b"", None, bytes(range(3)), b"\xff"],
    "n": [decimal.Decimal("1.50"), None, decimal.Decimal("-1e-20"), 12345678901234567890],
    "j": ['{"a": 1}', None, "[]", "null"],
}
EVERY_ROW = [
    "0|t|-32768|-2147483648|-9223372036854775808|0.5|0.1|1969-12-31 23:59:59.999999+00|2024-01-01 01:02:03.000004|2024-02-29"
    '|00000000-0000-0000-0000-000000000001||x|\\x|1.50|{"a": 1}',
    "1||1|0||NaN||||||||||",
    "2|f||1|0|-Infinity|5e-324|2024-02-29 12:00:00+00|0001-01-01 00:00:00|0001-01-01"
    "|ffffffff-ffff-ffff-ffff-ffffffffffff|näïve \U0001f600|x|\\x000102|-0.00000000000000000001|[]",
    "3|t|32767|2147483647|9223372036854775807|1e+30|-0|9999-12-31 23:59:00+00|2024-01-01 12:00:00|9999-12-31"
    "|00000000-0000-0000-0000-000000000000|a/b|y|\\xff|12345678901234567890|null",
]


@pytest.mark.parametrize("access_method", ["lanes", "heap"])
def test_every_type_arrives_as_it_was_sent(client, sql, table, access_method):
    name = table(EVERY_TYPE, access_method)
    values = {**EVERY_VALUE, "c": pd.Series(EVERY_VALUE["c"]), "n": [None if one is None else str(one) for one in EVERY_VALUE["n"]]}
    assert client.append(name, values) == 4
    assert ["|".join(row) for row in sql(f"SELECT * FROM {name} ORDER BY o")] == EVERY_ROW


def test_a_frame_arrives_as_it_was_sent(client, sql, table):
    name = table("ts timestamptz NOT NULL, sym text, price float8, size int")
    frame = pd.DataFrame(
        {
            "ts": pd.date_range("2024-01-01", periods=3, freq="1s", tz="America/New_York"),
            "sym": ["a", None, "b"],
            "price": [1.5, np.nan, 2.5],
            "size": pd.array([1, 2, None], "Int32"),
        }
    )
    assert client.append(name, frame, nan_is_null=True) == 3
    assert sql(f"SELECT extract(epoch FROM ts)::bigint, sym, price, size FROM {name} ORDER BY 1") == [
        ("1704085200", "a", "1.5", "1"),
        ("1704085201", "", "", "2"),
        ("1704085202", "b", "2.5", ""),
    ]


def test_an_arrow_table_arrives_as_it_was_sent(client, sql, table):
    name = table("ts timestamptz NOT NULL, sym text, price float8, size int, id uuid, open boolean, d date, raw bytea")
    times = [datetime.datetime(2024, 1, 1, 0, 0, second, tzinfo=UTC) for second in range(3)]
    rows = pa.table(
        {
            "ts": pa.array(times, pa.timestamp("ns", "Europe/Paris")),
            "sym": pa.array(["a", None, "a"]).dictionary_encode(),
            "price": pa.array([1.5, None, 2.5]),
            "size": pa.array([1, 2, None], pa.int16()),
            "id": pa.array([bytes(16), None, bytes([255] * 16)], pa.binary(16)),
            "open": pa.array([True, None, False]),
            "d": pa.array([datetime.date(2024, 2, 29), None, None]),
            "raw": pa.array([b"\0", None, b"x"], pa.large_binary()),
        }
    )
    assert client.append(name, rows) == 3
    assert client.append(name, rows.to_batches()[0].slice(1, 1)) == 1
    second = ("1704067201", "", "", "2", "", "", "", "")
    assert sql(f"SELECT extract(epoch FROM ts)::bigint, sym, price, size, id, open, d, raw FROM {name} ORDER BY 1") == [
        ("1704067200", "a", "1.5", "1", "00000000-0000-0000-0000-000000000000", "t", "2024-02-29", "\\x00"),
        second,
        second,
        ("1704067202", "a", "2.5", "", "ffffffff-ffff-ffff-ffff-ffffffffffff", "f", "", "\\x78"),
    ]


@pytest.mark.parametrize("distinct", [3, 1_000, 70_000])
def test_text_of_every_code_width_over_many_requests(client, sql, table, distinct):
    name = table("n bigint, s text")
    numbers = np.arange(140_000)
    assert client.append(name, {"n": numbers, "s": [f"item {number // 2 % distinct}" for number in numbers]}) == 140_000
    query = f"SELECT count(*), count(DISTINCT s), bool_and(s = 'item ' || n / 2 % {distinct}) FROM {name}"
    assert sql(query) == [("140000", str(distinct), "t")]


def test_a_named_call_made_again_is_stored_once(client, sql, table):
    name = table("n int")
    for _ in range(2):
        assert client.append(name, {"n": [1, 2]}, key="once") == 2
    assert client.append(name, {"n": [1, 2]}) == 2
    assert sql(f"SELECT count(*) FROM {name}") == [("4",)]


def test_a_row_that_breaks_a_constraint_is_told(client, sql, table):
    name = table("n int CHECK (n > 0)")
    with pytest.raises(lanes_client.BadRequest, match="row 2: .*violates check constraint"):
        client.append(name, {"n": [1, -1]})
    assert sql(f"SELECT count(*) FROM {name}") == [("0",)]


@pytest.mark.parametrize(
    ("columns", "data", "told"),
    [
        ("n int", {"m": [1]}, 'no column "m"'),
        ("n int", {"n": [1.5]}, '"n" of table .* is int.*, which does not accept Float64'),
        ("n int NOT NULL", {"n": [None]}, "is NOT NULL, but row 1"),
        ("n int, t text", {"n": [1], "t": ["a\0b"]}, "(?i)nul"),
    ],
)
def test_what_does_not_fit_the_table_is_told(client, table, columns, data, told):
    with pytest.raises(lanes_client.BadRequest, match=told):
        client.append(table(columns), data)


def test_tables_that_are_not_there_or_not_ours(client, sql):
    with pytest.raises(lanes_client.NotFound, match="table public.nowhere does not exist"):
        client.append("nowhere", {"n": [1]})
    sql("DROP TABLE IF EXISTS closed; CREATE TABLE closed (n int)")
    with pytest.raises(lanes_client.Forbidden, match="GRANT INSERT"):
        client.append("closed", {"n": [1]})
