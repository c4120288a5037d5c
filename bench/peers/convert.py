"""Makes a Parquet file of each table in the given folder; see bench/src/column_files.rs for what is in it."""

import json
import pathlib
import sys

import numpy
import pyarrow
import pyarrow.parquet

TYPES = {"timestamp": "<i8", "int32": "<i4", "float64": "<f8", "float32": "<f4", "bool": "u1", "text": "<u2"}


def column(path, description):
    values = numpy.fromfile(path, dtype=TYPES[description["type"]])
    if description["type"] == "timestamp":
        return pyarrow.array(values.view("datetime64[us]"))
    if description["type"] == "bool":
        return pyarrow.array(values.astype(bool))
    if description["type"] == "text":
        return pyarrow.DictionaryArray.from_arrays(pyarrow.array(values.astype("i4")), pyarrow.array(description["items"]))
    return pyarrow.array(values)


folder = pathlib.Path(sys.argv[1])
for name, columns in json.loads((folder / "manifest.json").read_text()).items():
    arrays = {c["name"]: column(folder / f"{name}.{c['name']}", c) for c in columns}
    schema = pyarrow.schema([pyarrow.field(key, array.type, nullable=False) for key, array in arrays.items()])
    table = pyarrow.table(list(arrays.values()), schema=schema)
    pyarrow.parquet.write_table(table, folder / f"{name}.parquet", compression="none")
