"""Encoding of columns as a batch, and the split of many rows into batches.

A batch is a FlatBuffer of the schema ``extension/wire/schema/batch.fbs``, written from front to back. References only point forward, so
the tables come first, with holes for the offsets of the vectors, which are filled when the vectors are written. Three tables need no
generated code::

    root reference, "LNB1" | vtable, Batch | references to columns | (vtable, Column) ... | names | vectors, dictionaries
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .columns import Bools, Coded, Column, Fixed, Plain
from .errors import DataError
from .types import COLUMNS_MAX, NAME_BYTES_MAX

IDENTIFIER = b"LNB1"


def batches(columns: Mapping[str, Column], rows_max: int, bytes_max: int) -> Iterator[tuple[int, bytes]]:
    """Yields the number of rows and the bytes of each batch, in the order of rows: at most ``rows_max`` rows, and ``bytes_max``
    bytes unless a single row is longer."""
    rows = rows_of(columns)
    start = 0
    step = rows_max
    while start < rows:
        stop = min(start + step, rows)
        part = columns if (start, stop) == (0, rows) else {name: column.slice(start, stop) for name, column in columns.items()}
        bytes_ = encode(part)
        if len(bytes_) > bytes_max and stop - start > 1:
            # The rows of the next batches are likely to have the same length.
            step = max(1, min((stop - start) // 2, (stop - start) * bytes_max // len(bytes_)))
            continue
        yield stop - start, bytes_
        start = stop


def rows_of(columns: Mapping[str, Column]) -> int:
    """Returns the number of rows.

    Raises :class:`DataError` if columns differ in it, or if the batch would be invalid for another reason.
    """
    if len(columns) > COLUMNS_MAX:
        raise DataError(f"{len(columns)} columns, but only {COLUMNS_MAX} are allowed")
    for name in columns:
        if not 1 <= len(name.encode("utf-8", "surrogatepass")) <= NAME_BYTES_MAX or "\0" in name:
            raise DataError(f"column {name!r}: a name must have 1 to {NAME_BYTES_MAX} bytes and no NUL")
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"columns differ in their number of rows: {lengths}")
    return next(iter(lengths.values()), 0)


def encode(columns: Mapping[str, Column]) -> bytes:
    """Encodes all rows as one batch."""
    writer = _Writer()
    writer.u32(0)
    writer.put(IDENTIFIER)
    root = writer.table([("rows", 4), ("columns", 4)])
    writer.refer(0, root.start)
    writer.set_u32(root.places["rows"], rows_of(columns))
    writer.begin_vector(root.places["columns"], len(columns), 4)
    holes = [writer.u32(0) for _ in columns]
    tables = []
    for hole, column in zip(holes, columns.values()):
        fields = [("name", 4), ("type", 1), ("values", 4)]
        fields += [("validity", 4 if column.validity is not None else 0)]
        fields += [("dictionary", 4 if isinstance(column, Coded) else 0)]
        fields += [("bytes", 4 if isinstance(column, Plain) else 0)]
        table = writer.table(fields)
        writer.refer(hole, table.start)
        writer.out[table.places["type"]] = column.type
        tables.append(table)
    for table, name in zip(tables, columns):
        encoded = name.encode()
        writer.begin_vector(table.places["name"], len(encoded), 4)
        writer.put(encoded + b"\0")
    for table, column in zip(tables, columns.values()):
        _vectors(writer, table, column)
    return bytes(writer.out)


def _vectors(writer: _Writer, table: _Table, column: Column) -> None:
    if column.validity is not None:
        writer.vector(table.places["validity"], _bitmap(column.validity))
    if isinstance(column, Bools):
        writer.vector(table.places["values"], _bitmap(column.values))
    elif isinstance(column, Fixed):
        writer.vector(table.places["values"], column.values.tobytes())
    elif isinstance(column, Plain):
        writer.vector(table.places["values"], _ends(column.items))
        writer.vector(table.places["bytes"], b"".join(column.items))
    else:
        width = 1 if len(column.items) <= 0x100 else 2 if len(column.items) <= 0x1_0000 else 4
        writer.vector(table.places["values"], column.codes.astype(f"<u{width}").tobytes())
        dictionary = writer.table([("code_bytes", 1), ("item_ends", 4), ("item_bytes", 4)])
        writer.refer(table.places["dictionary"], dictionary.start)
        writer.out[dictionary.places["code_bytes"]] = width
        writer.vector(dictionary.places["item_ends"], _ends(column.items), element_bytes=4)
        writer.vector(dictionary.places["item_bytes"], b"".join(column.items))


def _bitmap(bits: Any) -> bytes:
    return np.packbits(bits, bitorder="little").tobytes()


def _ends(items: list[bytes]) -> bytes:
    ends = np.cumsum(np.fromiter(map(len, items), np.int64, len(items)))
    if len(ends) and ends[-1] >= 1 << 30:
        raise DataError("the items of one column are longer than 1 GiB; send fewer rows at once")
    return ends.astype("<u4").tobytes()


class _Table:
    """The offsets of a table and its fields."""

    def __init__(self, start: int, places: dict[str, int]) -> None:
        self.start = start
        self.places = places


class _Writer:
    """A FlatBuffer that grows at its end."""

    def __init__(self) -> None:
        self.out = bytearray()

    def put(self, data: bytes) -> None:
        self.out += data

    def u32(self, value: int) -> int:
        self.out += struct.pack("<I", value)
        return len(self.out) - 4

    def set_u32(self, place: int, value: int) -> None:
        struct.pack_into("<I", self.out, place, value)

    def align(self, alignment: int, ahead: int = 0) -> None:
        """Pads so that the offset ``ahead`` bytes further on is a multiple of ``alignment``."""
        self.out += bytes(-(len(self.out) + ahead) % alignment)

    def refer(self, hole: int, target: int) -> None:
        self.set_u32(hole, target - hole)

    def table(self, fields: list[tuple[str, int]]) -> _Table:
        """Writes a vtable and its table.

        The fields are in the order of their slots, with their widths; 0 stands for a missing field.
        """
        offsets: dict[str, int] = {}
        end = 4
        for name, width in sorted(fields, key=lambda field: -field[1]):
            if width:
                offsets[name] = end
                end += width
        self.align(4)
        vtable = len(self.out)
        slots = [offsets.get(name, 0) for name, _ in fields]
        self.out += struct.pack(f"<{2 + len(slots)}H", 4 + 2 * len(slots), end, *slots)
        self.align(4)
        start = self.u32(0)
        self.set_u32(start, start - vtable)
        self.out += bytes(end - 4)
        self.align(4)
        return _Table(start, {name: start + offset for name, offset in offsets.items()})

    def begin_vector(self, hole: int, elements: int, alignment: int) -> None:
        """Fills ``hole``. The elements must be written next; the first one is at a multiple of ``alignment``."""
        self.align(alignment, 4)
        self.refer(hole, len(self.out))
        self.u32(elements)

    def vector(self, hole: int, data: bytes, element_bytes: int = 1) -> None:
        """Writes a vector whose first element is at a multiple of 8."""
        self.begin_vector(hole, len(data) // element_bytes, 8)
        self.out += data
