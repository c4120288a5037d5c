"""DuckDB: an in-memory database, symbols and services as enumerations.

Usage: duckdb_peer.py <folder of the Parquet files> <threads>
"""

import sys

import duckdb

from loop import serve

folder, threads = sys.argv[1], int(sys.argv[2])
connection = duckdb.connect(":memory:", config={"threads": threads})


def load():
    for table, text in [("trades", "sym"), ("quotes", "sym"), ("events", "service")]:
        source = f"read_parquet('{folder}/{table}.parquet')"
        # Both tables' symbols are one type, so that a join compares codes.
        connection.execute(
            f"CREATE TYPE IF NOT EXISTS {text}_type AS ENUM (SELECT DISTINCT {text}::varchar FROM {source} ORDER BY 1)"
            if text == "service"
            else f"""CREATE TYPE IF NOT EXISTS sym_type AS ENUM (
                SELECT DISTINCT sym::varchar FROM read_parquet(['{folder}/trades.parquet', '{folder}/quotes.parquet']) ORDER BY 1)"""
        )
        connection.execute(f"CREATE TABLE {table} AS SELECT * REPLACE ({text}::varchar::{text}_type AS {text}) FROM {source}")


def prepare(query):
    return lambda: connection.sql(query).to_arrow_table(), lambda table: table


serve(f"DuckDB {duckdb.__version__}", load, connection.execute, prepare)
