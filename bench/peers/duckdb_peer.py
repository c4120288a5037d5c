"""DuckDB: an in-memory database.

Columns of text that have one name are one enumeration, so that a join of two tables compares codes.

Usage: duckdb_peer.py <folder of the Parquet files> <threads>
"""

import json
import pathlib
import sys

import duckdb

from loop import serve

folder, threads = pathlib.Path(sys.argv[1]), int(sys.argv[2])
connection = duckdb.connect(":memory:", config={"threads": threads})


def load():
    tables = json.loads((folder / "manifest.json").read_text())
    texts = {}
    for table, columns in tables.items():
        for column in columns:
            if column["type"] == "text":
                texts.setdefault(column["name"], []).append(table)
    for name, of_tables in texts.items():
        columns = [f"SELECT {name}::varchar AS item FROM '{folder}/{table}.parquet'" for table in of_tables]
        items = " UNION ".join(columns)
        connection.execute(f"CREATE TYPE {name}_type AS ENUM (SELECT item FROM ({items}) ORDER BY 1)")
    for table, columns in tables.items():
        names = [column["name"] for column in columns if column["type"] == "text"]
        codes = ", ".join(f"{name}::varchar::{name}_type AS {name}" for name in names)
        replaced = f"* REPLACE ({codes})" if codes else "*"
        connection.execute(f"CREATE TABLE {table} AS SELECT {replaced} FROM '{folder}/{table}.parquet'")


def prepare(query):
    return lambda: connection.sql(query).to_arrow_table(), lambda table: table


serve(f"DuckDB {duckdb.__version__}", load, connection.execute, prepare)
