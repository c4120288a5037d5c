"""A reader of batches with the FlatBuffers project's own Python runtime, as an oracle for what this package writes."""

import flatbuffers.encode
import flatbuffers.number_types as number_types
import flatbuffers.packer as packer
import flatbuffers.table
import numpy as np

WIDTHS = {"INT16": "<i2", "INT32": "<i4", "INT64": "<i8", "FLOAT32": "<f4", "FLOAT64": "<f8", "TIMESTAMP": "<i8", "DATE": "<i4"}


def read(batch):
    """Returns names with lists of values (None for NULL), and the offsets of vectors that must be aligned to 8."""
    assert batch[4:8] == b"LNB1"
    root = flatbuffers.table.Table(bytearray(batch), flatbuffers.encode.Get(packer.uoffset, batch, 0))
    rows = number(root, 0, number_types.Uint32Flags)
    columns = {}
    field = root.Offset(4 + 2)
    for index in range(root.VectorLen(field)):
        table = flatbuffers.table.Table(root.Bytes, root.Indirect(root.Vector(field) + 4 * index))
        name = table.String(table.Offset(4) + table.Pos).decode()
        columns[name] = values(table, rows)
    return columns


def number(table, slot, flags):
    field = table.Offset(4 + 2 * slot)
    return table.Get(flags, field + table.Pos) if field else 0


def vector(table, slot, dtype="u1", alignment=1):
    field = table.Offset(4 + 2 * slot)
    if not field:
        return None
    start = table.Vector(field)
    assert start % alignment == 0
    return np.frombuffer(bytes(table.Bytes), dtype, table.VectorLen(field), start)


def values(table, rows):
    from lanes_client import ColumnType

    kind = ColumnType(number(table, 1, number_types.Uint8Flags))
    raw = vector(table, 2, alignment=8)
    validity = vector(table, 3, alignment=8)
    field = table.Offset(4 + 2 * 4)
    if kind in (ColumnType.TEXT, ColumnType.BYTES):
        if field:
            dictionary = flatbuffers.table.Table(table.Bytes, table.Indirect(field + table.Pos))
            width = number(dictionary, 0, number_types.Uint8Flags)
            items = cut(vector(dictionary, 1, "<u4", 4), vector(dictionary, 2))
            found = [items[code] for code in raw.view(f"<u{width}")]
        else:
            found = cut(raw.view("<u4"), vector(table, 5, alignment=8))
        found = [item.decode() for item in found] if kind is ColumnType.TEXT else found
    elif kind is ColumnType.BOOL:
        assert len(raw) == (rows + 7) // 8
        found = np.unpackbits(raw, bitorder="little")[:rows].astype(bool).tolist()
    elif kind is ColumnType.UUID:
        found = [raw[row * 16 : row * 16 + 16].tobytes() for row in range(rows)]
    else:
        found = raw.view(WIDTHS[kind.name]).tolist()
    assert len(found) == rows
    if validity is None:
        return kind.name, found
    assert len(validity) == (rows + 7) // 8
    valid = np.unpackbits(validity, bitorder="little")[:rows]
    return kind.name, [value if bit else None for value, bit in zip(found, valid)]


def cut(ends, data):
    starts = [0, *ends.tolist()]
    return [data[start:end].tobytes() for start, end in zip(starts, starts[1:])]
