"""Conversion of pyarrow tables and record batches to Arrow IPC streams. The gateway converts their columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def is_arrow(data: Any) -> bool:
    """Returns whether this is a Table or a RecordBatch of pyarrow, without importing pyarrow."""
    return any(kind.__name__ in ("Table", "RecordBatch") and kind.__module__.split(".")[0] == "pyarrow" for kind in type(data).__mro__)


def streams(data: Any, rows_max: int, bytes_max: int) -> Iterator[tuple[int, bytes]]:
    """Yields the number of rows and the bytes of each stream, in the order of rows, with the limits of
    :func:`lanes_client.batch.batches`."""
    import pyarrow

    table = pyarrow.Table.from_batches([data]) if isinstance(data, pyarrow.RecordBatch) else data
    start = 0
    step = rows_max
    while start < table.num_rows:
        part = table.slice(start, step)
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, part.schema) as writer:
            writer.write_table(part)
        stream = sink.getvalue().to_pybytes()
        if len(stream) > bytes_max and part.num_rows > 1:
            step = max(1, min(part.num_rows // 2, part.num_rows * bytes_max // len(stream)))
            continue
        yield part.num_rows, stream
        start += part.num_rows
