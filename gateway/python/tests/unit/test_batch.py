"""The bytes of batches: dictionaries, and the split of many rows."""

import numpy as np
import pytest
from reader import read

from lanes_client import DataError, batch, infer
from lanes_client.columns import Coded, Plain


def split(columns, rows_max, bytes_max):
    written = {name: infer.column(name, values) for name, values in columns.items()}
    return list(batch.batches(written, rows_max, bytes_max))


@pytest.mark.parametrize(("distinct", "width"), [(3, 1), (257, 2), (70_000, 4)])
def test_text_that_repeats_gets_a_dictionary_of_the_narrowest_codes(distinct, width):
    repeats = 8_192 if distinct < 4_096 else 2
    names = [f"n{index}" for index in range(distinct)]
    values = names * repeats if distinct < 4_096 else [name for name in names for _ in range(repeats)]
    values = values[:140_000]
    column = infer.column("c", values)
    assert isinstance(column, Coded)
    found = batch.encode({"c": column})
    assert read(found)["c"] == ("TEXT", values)
    assert len(found) < len(values) * width + distinct * 12 + 300


def test_text_that_differs_stays_plain():
    assert isinstance(infer.column("c", [f"n{index}" for index in range(5_000)]), Plain)
    late = ["a"] * 5_000 + [f"n{index}" for index in range(20_000)]
    assert isinstance(infer.column("c", late), Plain)


def test_batches_by_rows_keep_order_and_nulls():
    columns = {"n": [None if row % 3 == 0 else row for row in range(10)], "s": ["a", "b"] * 5, "f": [row % 4 == 0 for row in range(10)]}
    parts = split(columns, 4, 1 << 20)
    assert [rows for rows, _ in parts] == [4, 4, 2]
    for name, values in columns.items():
        assert [value for _, part in parts for value in read(part)[name][1]] == values


def test_batches_by_bytes_and_a_row_alone_may_be_longer():
    values = ["x" * 100] * 50 + ["y" * 5_000] + [f"{row:0100}" for row in range(50)]
    parts = split({"s": values}, 1_000, 2_000)
    assert all(rows == 1 or len(part) <= 2_000 for rows, part in parts)
    assert [value for _, part in parts for value in read(part)["s"][1]] == values


def test_a_part_of_a_dictionary_brings_its_own_items_only():
    parts = split({"s": ["long" * 1_000] * 10 + ["b"] * 10}, 10, 1 << 20)
    assert len(parts[1][1]) < 500


def test_no_rows_make_no_batch_and_no_columns_neither():
    assert split({"s": []}, 10, 100) == []
    assert split({}, 10, 100) == []


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"a": [1], "b": [1, 2]}, "differ in their number of rows: {'a': 1, 'b': 2}"),
        ({"": [1]}, "1 to 63 bytes"),
        ({"é" * 32: [1]}, "1 to 63 bytes"),
        ({"a\0": [1]}, "no NUL"),
        ({str(index): np.zeros(1) for index in range(1_601)}, "only 1600 are allowed"),
    ],
)
def test_what_no_batch_can_hold(columns, told):
    with pytest.raises(DataError) as caught:
        split(columns, 10, 100)
    assert told in str(caught.value)
