"""Polars: frames in memory, symbols and services as enumerations, time columns marked as sorted.

Usage: polars_peer.py <folder of the Parquet files> <threads> (the threads are set by POLARS_MAX_THREADS)
"""

import sys

import polars as pl

from loop import serve

folder = sys.argv[1]
names = {"pl": pl}


def load():
    symbols = None
    for table, text in [("trades", "sym"), ("quotes", "sym"), ("events", "service")]:
        frame = pl.read_parquet(f"{folder}/{table}.parquet").with_columns(pl.col(text).cast(pl.String))
        names[table] = frame
    both = pl.concat([names["trades"]["sym"], names["quotes"]["sym"]]).unique().sort()
    symbols, services = pl.Enum(both), pl.Enum(names["events"]["service"].unique().sort())
    for table, column, kind in [("trades", "sym", symbols), ("quotes", "sym", symbols), ("events", "service", services)]:
        frame = names[table].with_columns(pl.col(column).cast(kind), pl.col("ts").set_sorted())
        names[table] = frame.rechunk()


def setup(statement):
    exec(statement, names)


def prepare(expression):
    execute = eval(f"lambda: ({expression.strip()})", names)
    return execute, lambda frame: frame.to_arrow()


serve(f"Polars {pl.__version__}", load, setup, prepare)
