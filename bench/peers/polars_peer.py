"""Polars: frames in memory.

Columns of text that have one name are one enumeration; columns of times are marked as sorted.

Usage: polars_peer.py <folder of the Parquet files> <threads> (the threads are set by POLARS_MAX_THREADS)
"""

import json
import pathlib
import sys

import polars as pl

from loop import serve

folder = pathlib.Path(sys.argv[1])
names = {"pl": pl}


def load():
    tables = json.loads((folder / "manifest.json").read_text())
    frames = {table: pl.read_parquet(folder / f"{table}.parquet") for table in tables}
    texts = {}
    for table, columns in tables.items():
        for column in columns:
            if column["type"] == "text":
                texts.setdefault(column["name"], []).append(frames[table][column["name"]].cast(pl.String))
    kinds = {name: pl.Enum(pl.concat(values).unique().sort()) for name, values in texts.items()}
    for table, columns in tables.items():
        forms = [pl.col(c["name"]).cast(pl.String).cast(kinds[c["name"]]) for c in columns if c["type"] == "text"]
        forms += [pl.col(c["name"]).set_sorted() for c in columns if c["type"] == "timestamp"]
        names[table] = frames[table].with_columns(forms).rechunk()


def setup(statement):
    exec(statement, names)


def prepare(expression):
    execute = eval(f"lambda: ({expression.strip()})", names)
    return execute, lambda frame: frame.to_arrow()


serve(f"Polars {pl.__version__}", load, setup, prepare)
